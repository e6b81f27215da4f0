import { once } from "node:events";
import { expect, test } from "vitest";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { createRouterClients } from "./router-clients.ts";

test("a call whose answer is left early ends at the router too", async () => {
  await using bus = await openTestBus();
  let hasEnded = false;
  await using _server = await serveOnNats(bus, {
    service: "tool-router",
    routes: (router) =>
      router.service(ToolService, {
        async *callTool(_request, { signal }) {
          yield { event: { case: "progress" as const, value: { progress: 1 } } };
          if (!signal.aborted) await once(signal, "abort");
          hasEnded = true;
        },
      }),
  });
  const { router } = createRouterClients(bus, []);
  const { signal } = new AbortController();
  const request = { callId: "c", sessionId: "s", name: "double", argumentsJson: "{}" };
  for await (const { event } of router.callTool(request, { signal, principal: "local" })) {
    expect(event.case).toBe("progress");
    break;
  }
  await until(() => hasEnded, { what: "the router to hear of it" });
});
