import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CallHeldSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { eventsOf } from "./call-events.ts";

test("CTR-7 the holding of a call is told when the reader has taken it and comes back", async () => {
  const seen: string[] = [];
  const result = Promise.withResolvers<ToolResult>();
  const events = eventsOf((tell) => {
    void tell({ case: "held", value: create(CallHeldSchema) })?.then(() => seen.push("told"));
    return result.promise;
  });
  expect((await events.next()).value.event.case).toBe("held");
  expect(seen).toEqual([]);
  const next = events.next();
  await expect.poll(() => seen).toEqual(["told"]);
  result.resolve(create(ToolResultSchema, { outputJson: "1" }));
  expect((await next).value.event.case).toBe("result");
});
