import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { CallToolResponseSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { openTestDoor, postMessage } from "../http/testing/door.ts";
import { HeldCalls } from "./held-calls.ts";
import { createTaskCalls, type TasksOptions } from "./task-calls.ts";

const away = () => connectError("unavailable", "no router is there", { reason: "SERVICE_UNAVAILABLE" });

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
        if (reads <= 3) throw away();
        return { call: { callId, tool: "pay", runId: "", principal: "alice" } };
      },
    },
  } as unknown as TasksOptions);
  const { call, ended } = await begin({ id: 1, name: "pay", arguments: {} }, "c1");
  expect(call?.callId).toBe("c1");
  answered.resolve();
  expect((await ended).outputJson).toBe("1");
});

it("LOOP-14 a task whose record cannot be read at all is told as its call ended, not as one that was not sent", async () => {
  const { begin } = createTaskCalls({
    asking: { answers: { forms: false, urls: false } },
    held: new HeldCalls(),
    left: AbortSignal.timeout(1_000),
    principal: "alice",
    takeCall: () => () => {},
    argumentsJsonOf: () => "{}",
    // biome-ignore lint/correctness/useYield: it has nothing to give but its error
    async *callTool() {
      throw connectError("internal", "the router broke", { reason: "INTERNAL" });
    },
    calls: {
      async getToolCall() {
        throw away();
      },
    },
  } as unknown as TasksOptions);
  await expect(begin({ id: 1, name: "pay", arguments: {} }, "c1")).rejects.toThrow("the router broke");
});

it("DOOR-2 who waits for the result of a task gets it, though its record cannot be read for a moment", async () => {
  let reads = 0;
  const task = { callId: "c1", tool: "pay", principal: "alice", argumentsJson: "{}" };
  await using door = await openTestDoor({
    tools: {
      async *callTool() {
        yield { event: { case: "result", value: { outputJson: "1" } } };
      },
    },
    calls: {
      async getToolCall() {
        reads += 1;
        if (reads > 3 && reads <= 6) throw away();
        const state = reads > 6 ? ToolCallState.RESOLVED : ToolCallState.STARTED;
        return { call: { ...task, state, result: { outputJson: '"paid"' } } };
      },
    },
  });
  const message = { jsonrpc: "2.0", id: 1, method: "tasks/result", params: { taskId: "c1" } };
  expect(await (await postMessage(door.url, message)).text()).toContain('"text":"paid"');
});
