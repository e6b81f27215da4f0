import { expect, test } from "vitest";
import type { CatalogTool } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { createValidator } from "#runtime/schema/json-schema/validator.ts";
import { tool } from "../testing/fakes/tools.ts";
import type { Catalogue } from "./catalogue.ts";
import { CatalogueEditor, type EditorParts } from "./editor.ts";

/** An editor of tools, and what it has asked of their store. */
function openEditor() {
  const asked: string[] = [];
  const view = new BucketView<CatalogTool>();
  const stored = createMemoryBucket<CatalogTool>({ onWrite: (one) => view.apply({ kind: "set", ...one }) });
  const bucket = new Proxy(stored, {
    get(target, name: keyof Bucket<CatalogTool>) {
      asked.push(name);
      return target[name];
    },
  });
  const catalogue = { caughtUp: async () => {}, provider: () => undefined } as unknown as Catalogue;
  const tools = { bucket, view, caughtUp: async () => {} };
  const told: string[] = [];
  const audit: EditorParts["audit"] = ({ message = "" }) => void told.push(message);
  const parts = { catalogue, tools, validator: createValidator(), audit, secrets: new Map() };
  return { asked, told, stored, view, editor: new CatalogueEditor(parts as unknown as EditorParts) };
}

const fromFile = { origin: "clock.json" };
const clock = (description: string) => ({ ...tool("clock"), executionType: ExecutionType.INTERNAL, description });

test("ORCH-5 a file is written by one request, and not at all when it is stored as it is", async () => {
  const { asked, editor } = openEditor();
  const first = await editor.applyTool(clock("tells"), fromFile);
  expect(asked).toEqual(["replace"]);
  expect(await editor.applyTool(clock("tells"), fromFile)).toMatchObject({ revision: first.revision });
  expect(asked).toEqual(["replace"]);
  const changed = await editor.applyTool(clock("tells the time"), fromFile);
  expect(changed.revision).toBeGreaterThan(first.revision);
  expect(asked).toEqual(["replace", "replace"]);
});

test("ORCH-5 what another router has written meanwhile is read, and decides", async () => {
  const { asked, editor, stored, view } = openEditor();
  await editor.applyTool(clock("tells"), fromFile);
  const { value, revision = 0 } = (await stored.read("clock")) ?? {};
  if (value === undefined) return expect.fail("it is not stored");
  await stored.put("clock", { ...value, origin: "rpc" });
  view.apply({ kind: "set", key: "clock", value, revision }); // the news is late
  asked.length = 0;
  const late = editor.applyTool(clock("tells the time"), fromFile);
  await expect(late).rejects.toMatchObject({ reason: "ORIGIN_MISMATCH" });
  expect(asked).toEqual(["replace", "update"]);
});

test("ORCH-11 SEC-6 what is only checked is no decision: whoever may check fills no audit trail", async () => {
  const { told, editor } = openEditor();
  const faulty = { ...clock("tells"), name: "no name" };
  const refused = (validateOnly: boolean) =>
    expect(editor.applyTool(faulty, { origin: "rpc", validateOnly })).rejects.toMatchObject({
      code: "invalid_argument",
    });
  await refused(true);
  await editor.applyTool(clock("tells"), { origin: "rpc", validateOnly: true });
  expect(told).toEqual([]);
  await refused(false);
  expect(told).toEqual([expect.stringContaining('tool "no name" is refused')]);
});
