import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { CallToolResponseSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { HeldCalls } from "./held-calls.ts";
import { createTaskCalls, type TasksOptions } from "./task-calls.ts";

it("LOOP-14 a call whose record cannot be read for a moment is the task that it is, and no fault", async () => {
  const answered = Promise.withResolvers<void>();
  let reads = 0;
  const { begin } = createTaskCalls({
    asking: { answers: { forms: false, urls: false } },
    held: new HeldCalls(),
    left: new AbortController().signal,
    principal: "alice",
    takeCall: () => () => {},
    argumentsJsonOf: () => "{}",
    async *callTool() {
      await answered.promise;
      yield create(CallToolResponseSchema, { event: { case: "result", value: { outputJson: "1" } } });
    },
    calls: {
      async getToolCall({ callId }: { callId: string }) {
        reads += 1;
        if (reads <= 3) throw connectError("unavailable", "no router is there", { reason: "SERVICE_UNAVAILABLE" });
        return { call: { callId, tool: "pay", runId: "", principal: "alice" } };
      },
    },
  } as unknown as TasksOptions);
  const { call, ended } = await begin({ id: 1, name: "pay", arguments: {} }, "c1");
  expect(call?.callId).toBe("c1");
  answered.resolve();
  expect((await ended).outputJson).toBe("1");
});
