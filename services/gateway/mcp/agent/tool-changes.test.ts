import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ListToolsResponseSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { delay } from "#runtime/time/delay.ts";
import { followTools } from "./tool-changes.ts";
import { scopeOfSession, type Tools } from "./tool-list.ts";

test("OPS-6 a router of an earlier release, which does not wait for another list, is not asked without end", async () => {
  const asked: string[] = [];
  const tools: Pick<Tools, "listTools"> = {
    async listTools({ knownToolsRevision = "" }) {
      asked.push(knownToolsRevision);
      return create(ListToolsResponseSchema, { toolsRevision: "1", unchanged: knownToolsRevision === "1" });
    },
  };
  const ending = new AbortController();
  const { signal } = ending;
  const lists = followTools({ tools: tools as Tools, scope: scopeOfSession("s"), options: {}, signal });
  await lists.next();
  const next = lists.next();
  await delay(500);
  expect(asked).toEqual(["", "", "1"]); // whether there is another list, the list, and once whether it stands
  ending.abort();
  expect((await next).done).toBe(true);
});
