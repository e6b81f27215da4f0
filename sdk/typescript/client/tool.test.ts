import { createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { createToolbus, type Tool } from "./toolbus.ts";

/* LOOP-7: what a function gives back ends neither the run nor what else the program offers. */

interface Answer {
  readonly submissionId: string;
  readonly outcome: { case: "resultJson" | "error" | undefined; value?: string };
}

/** A suite with one call, which takes no results, only errors. */
function openSuite() {
  const { promise: answered, resolve } = Promise.withResolvers<Answer>();
  const ids = new Set<string>();
  const take = (answer: Answer) => {
    ids.add(answer.submissionId);
    if (answer.outcome.case === "error") return resolve(answer);
    throw connectError("invalid_argument", "the result is too large", { reason: "MESSAGE_TOO_LARGE" });
  };
  const call = { callId: "c", name: "find", argumentsJson: "{}" };
  const request = { event: { case: "request" as const, value: { requestId: "c", tool: "find", argumentsJson: "{}" } } };
  const transport = createRouterTransport(({ service }) => {
    service(RunService, {
      createRun: () => ({ run: { id: "r", sessionId: "s" } }),
      getRun: () => ({ run: { id: "r", state: RunState.COMPLETED, outputText: "done", requiredCalls: [call] } }),
      submitOutputs({ outputs: [output] }) {
        take(output as Answer);
        return {};
      },
      async *watchRun() {
        await answered;
        yield { update: { case: "event", value: { sequence: 1, event: { case: "ended", value: {} } } } };
      },
    });
    service(SessionService, { createSession: () => ({}) });
    service(CallerService, {
      declareTools: () => ({ names: ["desk_find"] }),
      respond(request) {
        take(request as Answer);
        return {};
      },
      async *watchCaller() {
        yield { event: { case: "attached", value: {} } };
        yield request;
        await new Promise(() => {});
      },
    });
    service(ToolCallService, {
      acknowledgeToolCall: () => ({ call: { callId: "c", tool: "find", argumentsJson: "{}" } }),
      submitToolResult(request) {
        take(request as Answer);
        return {};
      },
      async *watchToolCalls() {
        yield { update: { case: "call", value: { deliveryId: "d", call: { callId: "c" } } } };
        await new Promise(() => {});
      },
    });
  });
  return { toolbus: createToolbus({ transport, patienceMs: 0 }), answered, ids };
}

const find: Tool = { name: "find", description: "", run: () => "x".repeat(10) };

test("a result that a run refuses is told to its model as the call's error", async () => {
  const { toolbus, answered, ids } = openSuite();
  const { text } = await toolbus.run("clerk", "hello", { functions: [find] }).result();
  expect([text, (await answered).outcome.value, ids.size]).toEqual(["done", "the result is too large", 2]);
});

test("a result that a request refuses is told as its error, and the tools stay offered", async () => {
  const { toolbus, answered } = openSuite();
  const session = await toolbus.openSession("clerk");
  await using offered = await session.offer("desk", [find]);
  const first = await Promise.race([answered, offered.ended]);
  expect(first?.outcome.value).toBe("the result is too large");
});

test("a result that a watched call refuses is told as its error", async () => {
  const { toolbus, answered } = openSuite();
  await using watch = await toolbus.watch({ tools: { find: find.run } });
  const first = await Promise.race([answered, watch.ended]);
  expect(first?.outcome.value).toBe("the result is too large");
});
