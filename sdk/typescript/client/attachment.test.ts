import { createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { attach } from "./attachment.ts";
import { openConnection } from "./connection.ts";
import { openSession } from "./session.ts";

test("CTR-3 a request that was sent again, and comes behind its answer, is not executed again", async () => {
  const answered: string[] = [];
  const sentAll = Promise.withResolvers<void>();
  const request = (requestId: string) => ({
    event: { case: "request" as const, value: { requestId, tool: "notify", argumentsJson: "{}" } },
  });
  let whenAnswered = () => {};
  const transport = createRouterTransport(({ service }) => {
    service(CallerService, {
      declareTools: () => ({ names: ["desk_notify"] }),
      respond: ({ requestId }) => {
        answered.push(requestId);
        whenAnswered();
        return {};
      },
      async *watchCaller() {
        const first = new Promise<void>((resolve) => {
          whenAnswered = resolve;
        });
        yield { event: { case: "attached", value: {} } };
        yield request("first");
        await first;
        yield request("first"); // as one that was on its way when the answer came
        yield request("second");
        sentAll.resolve();
        await new Promise(() => {});
      },
    });
  });
  const connection = openConnection({ transport, patienceMs: 0 });
  const executed: string[] = [];
  const run = (_: unknown, { callId }: { callId: string }) => void executed.push(callId);
  const tools = [{ name: "notify", description: "", run }];
  const attachment = await attach(connection, { sessionId: "s", callerId: "desk", tools });
  await sentAll.promise;
  await expect.poll(() => answered).toEqual(["first", "second"]);
  expect(executed).toEqual(["first", "second"]);
  await attachment.close();
});

test("DOOR-5 tools that are offered later are executed, whichever stream of the program their request comes by", async () => {
  const outcomes: unknown[] = [];
  const sending = Promise.withResolvers<void>();
  let streams = 0;
  const transport = createRouterTransport(({ service }) => {
    service(SessionService, { createSession: () => ({}) });
    service(CallerService, {
      declareTools: () => ({}),
      respond({ outcome }) {
        outcomes.push(outcome.value);
        return {};
      },
      async *watchCaller() {
        const isFirst = ++streams === 1;
        yield { event: { case: "attached", value: {} } };
        await sending.promise;
        const tools = isFirst ? ["greet", "find"] : [];
        yield* tools.map(requestOf);
        await new Promise(() => {});
      },
    });
  });
  const session = await openSession(openConnection({ transport, patienceMs: 0 }), "clerk");
  const tool = (name: string) => ({ name, description: "", run: () => name });
  await using _first = await session.offer("desk", [tool("greet")]);
  await using _second = await session.offer("desk", [tool("greet"), tool("find")]);
  sending.resolve();
  await expect.poll(() => outcomes).toEqual(['"greet"', '"find"']);
});

test("CTR-3 a request that another stream of the program takes over while it is executed is not executed again", async () => {
  const answered = Promise.withResolvers<string>();
  const [moving, moved] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let streams = 0;
  const transport = createRouterTransport(({ service }) => {
    service(SessionService, { createSession: () => ({}) });
    service(CallerService, {
      declareTools: () => ({}),
      respond({ requestId }) {
        answered.resolve(requestId);
        return {};
      },
      async *watchCaller() {
        const isFirst = ++streams === 1;
        yield { event: { case: "attached", value: {} } };
        if (!isFirst) await moving.promise;
        yield requestOf("greet");
        if (!isFirst) moved.resolve();
        await new Promise(() => {});
      },
    });
  });
  const session = await openSession(openConnection({ transport, patienceMs: 0 }), "clerk");
  const [begun, ending] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let executions = 0;
  const run = async () => {
    executions += 1;
    begun.resolve();
    await ending.promise;
  };
  const tool = { name: "greet", description: "", run };
  const first = await session.offer("desk", [tool]);
  await begun.promise;
  await using _second = await session.offer("desk", [tool]);
  await first.close();
  moving.resolve();
  await moved.promise;
  ending.resolve();
  expect(await answered.promise).toBe("greet");
  expect(executions).toBe(1);
});

function requestOf(tool: string) {
  return { event: { case: "request" as const, value: { requestId: tool, tool, argumentsJson: "{}" } } };
}
