import { once } from "node:events";
import type { ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { Superseded, TakenOver } from "../../log/claim.ts";
import { createRouterClients } from "./router-clients.ts";

const request = { callId: "c", sessionId: "s", name: "double", argumentsJson: "{}" };

/** A router whose calls go on until it hears that they are left. */
async function openRouter() {
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openTestBus());
  let begun = 0;
  let hasEnded = false;
  const closing = Promise.withResolvers<void>();
  const routes = (router: ConnectRouter) =>
    router
      .service(ToolService, {
        async *callTool(_request, { signal }) {
          begun += 1;
          yield { event: { case: "progress" as const, value: { progress: 1 } } };
          if (!signal.aborted) await Promise.race([once(signal, "abort"), closing.promise]);
          hasEnded = signal.aborted;
        },
      })
      .service(ToolCallService, { cancelToolCall: () => ({}) });
  stack.use(await serveOnNats(bus, { service: "tool-router", routes }));
  stack.defer(closing.resolve);
  const owned = stack.move();
  const { router } = createRouterClients(bus, []);
  return { router, begun: () => begun, hasEnded: () => hasEnded, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

test("LOOP-13 a call of a process that has to stop by then is not made", async () => {
  await using world = await openRouter();
  const signal = AbortSignal.abort(new Failure("unavailable", "it stops", { reason: "INSTANCE_STOPPING" }));
  const calling = Array.fromAsync(world.router.callTool(request, { signal, principal: "local" }));
  await expect(calling).rejects.toThrow("it stops");
  await world.router.cancelToolCall({ callId: "other" }, { signal: new AbortController().signal, principal: "local" });
  expect(world.begun()).toBe(0);
});

test("a call whose answer is left early ends at the router too", async () => {
  await using world = await openRouter();
  const { signal } = new AbortController();
  for await (const { event } of world.router.callTool(request, { signal, principal: "local" })) {
    expect(event.case).toBe("progress");
    break;
  }
  await until(world.hasEnded, { what: "the router to hear of it" });
});

test.each([
  ["its run is canceled", new Superseded("the run is to be canceled"), true],
  ["its run's time is over", new Error("the run's deadline has passed"), true],
  ["another process took the run over", new TakenOver("epoch 2 took over from epoch 1"), false],
  ["this process stops", new Failure("unavailable", "it stops", { reason: "INSTANCE_STOPPING" }), false],
])(
  "LOOP-13 LOOP-15 a call that is left because %s: whether the router hears of a cancel",
  async (_, reason, isCanceled) => {
    await using world = await openRouter();
    const leaving = new AbortController();
    const { signal } = leaving;
    const reading = (async () => {
      for await (const { event } of world.router.callTool(request, { signal, principal: "local" }))
        if (event.case === "progress") leaving.abort(reason);
    })();
    await expect(reading).rejects.toThrow();
    await world.router.cancelToolCall(
      { callId: "other" },
      { signal: new AbortController().signal, principal: "local" },
    ); // goes the same way, later
    if (isCanceled) await until(world.hasEnded, { what: "the router to hear of it" });
    expect(world.hasEnded()).toBe(isCanceled);
  },
);
