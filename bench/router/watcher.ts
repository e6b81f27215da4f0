/** A service outside that answers each call at once, through whichever router, as the bus would choose it; a provider, too. */
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { serverInterceptors } from "#runtime/rpc/interceptors.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { clientFor } from "../../services/clients.ts";
import type { Login } from "../measuring/bench-suite.ts";
import { argumentOf, sayFault, sayReady } from "../measuring/peer-process.ts";
import { CALLERS_ROUTER, PROVIDER, PROVIDER_TOOL, RAW_SUBJECT, SOURCE, TOOL, WATCHERS_ROUTER } from "./setting.ts";

const login = argumentOf<Login>();
const bus = await openBus({ ...login, name: "watcher" });
const calls = clientFor(bus, ToolCallService, { process: WATCHERS_ROUTER });
const others = clientFor(bus, ToolCallService, { process: CALLERS_ROUTER });

async function watch(): Promise<void> {
  let handed = 0;
  for await (const { update } of calls.watchToolCalls({ tools: [TOOL], watcherId: "measured", maxInFlight: 256 })) {
    const call = update.case === "call" ? update.value.call : undefined;
    if (call === undefined) throw new Error(`${TOOL} is not there to be watched`);
    const answering = handed++ % 2 === 0 ? calls : others;
    const outcome = { case: "resultJson" as const, value: call.argumentsJson || "{}" };
    void answering.submitToolResult({ callId: call.callId, outcome }).catch(sayFault);
  }
}

bus.connection.subscribe(RAW_SUBJECT, {
  callback: (_error, message) => {
    message.respond(message.data);
  },
});
const offer = {
  tools: [{ source: SOURCE, tool: { name: PROVIDER_TOOL, annotations: { readOnlyHint: true } } }],
  sources: [{ source: SOURCE, available: true }],
};
await serveOnNats(bus, {
  service: PROVIDER,
  interceptors: serverInterceptors({ logger: console, fromOutside: true }),
  routes: (connect) =>
    connect.service(ToolProviderService, {
      getProvidedTools: () => offer,
      async *watchProvidedTools(_request, { signal }) {
        yield offer;
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      },
      async *executeTool({ argumentsJson }) {
        yield { event: { case: "result", value: { outputJson: argumentsJson } } };
      },
    }),
});
await bus.connection.flush();
void watch().catch((error: unknown) => sayFault(`the watch ended: ${error}`));
sayReady();
