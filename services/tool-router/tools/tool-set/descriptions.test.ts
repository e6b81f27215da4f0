import { expect, test } from "vitest";
import { Builtin, Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { agent, catalogueOf, offer, tool } from "../../testing/fakes/tools.ts";
import type { Offer } from "./offer.ts";
import { createToolSet } from "./tool-set.ts";

const policy = { builtin: Builtin.FS_READ, allowedPaths: ["/data"] };
const entry = (name: string, more = {}) =>
  tool(name, {
    executionType: ExecutionType.BUILTIN,
    inputSchemaJson: '{"type":"object"}',
    builtinPolicy: policy,
    ...more,
  });

/** What a provider says of `fs_read`, without a policy. */
function described(provider: string): Offer {
  const reader = tool("fs_read", {
    executionType: ExecutionType.BUILTIN,
    description: "Reads a file",
    inputSchemaJson: '{"required":["path"]}',
    effect: Effect.PURE,
  });
  return {
    ...offer(provider, {}),
    tools: [{ $typeName: "toolbus.provider.v1.OfferedTool", resumable: false, source: "", tool: reader }],
  };
}

test("ORCH-9 a built-in is there only by an entry of the catalogue, under its policy, whatever the provider offers", () => {
  const everything = agent({ use: ["*", "notes", "fs_read"] });
  expect([...createToolSet(everything, catalogueOf(), [described("worker")]).byReference.keys()]).toEqual([]);
  const tools = createToolSet(everything, catalogueOf(entry("notes"), entry("fs_read")), [described("worker")]);
  expect([...tools.byReference.keys()]).toEqual(["notes", "fs_read"]);
  for (const one of tools.byReference.values()) {
    expect(one.executor).toEqual({ kind: "provider", provider: "worker", source: undefined, tool: "fs_read" });
    expect(one.tool.builtinPolicy).toMatchObject(policy);
    expect(one.isVisible).toBe(false);
  }
  expect(
    createToolSet(agent({ use: ["@x/*"] }), catalogueOf(entry("fs_read")), [described("worker")]).byReference.size,
  ).toBe(0);
});

test("what the entry leaves out is as its own provider describes it; nobody else's word counts", () => {
  const own = entry("own", {
    description: "Mine",
    inputSchemaJson: '{"type":"object","required":["x"]}',
    effect: Effect.IDEMPOTENT,
  });
  const catalogue = catalogueOf(entry("bare"), own);
  const tools = createToolSet(agent({ use: ["bare", "own"] }), catalogue, [described("stranger"), described("worker")]);
  expect(tools.byReference.get("bare")).toMatchObject({
    tool: { name: "bare", description: "Reads a file", inputSchemaJson: '{"required":["path"]}' },
    effect: Effect.PURE,
  });
  expect(tools.byReference.get("own")).toMatchObject({ tool: { description: "Mine" }, effect: Effect.IDEMPOTENT });
  const alone = createToolSet(agent({ use: ["bare", "own"] }), catalogue, [described("stranger")]).byReference.get(
    "bare",
  );
  expect(alone).toMatchObject({ tool: { description: "" }, effect: Effect.AT_MOST_ONCE });
});

test("ORCH-5 a provider that is away is why its tools of the catalogue cannot be used", () => {
  const away = { ...described("worker"), failure: "nobody serves worker-pool" };
  const tools = createToolSet(agent({ use: ["notes"] }), catalogueOf(entry("notes")), [away]);
  expect(tools.byReference.get("notes")?.unavailable).toBe("nobody serves worker-pool");
});
