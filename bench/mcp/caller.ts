/** Calls each way, and says how long a call took. */
import { randomUUID } from "node:crypto";
import { type CallToolResult, Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { clientFor } from "../../services/clients.ts";
import { argumentOf, type Login } from "../call/setting.ts";
import { medianOf } from "../measuring/result.ts";
import { type Order, type Report, SESSION, SOURCES, TOOL, type Way } from "./setting.ts";

const { login, server, url } = argumentOf<{ login: Login; server: readonly string[]; url: string }>();
const [command = "", ...args] = server;
const text = "a line of text that comes back";
const tools = clientFor(await openBus({ ...login, name: "caller" }), ToolService);

async function openSdk(transport: Parameters<Client["connect"]>[0]): Promise<() => Promise<unknown>> {
  const client = new Client({ name: "bench", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(transport);
  return async () => {
    const { content } = (await client.callTool({ name: TOOL, arguments: { text } })) as CallToolResult;
    return content[0]?.type === "text" ? content[0].text : content;
  };
}

async function callOverBus(source: string): Promise<unknown> {
  const request = { sessionId: SESSION, name: `@${source}/${TOOL}`, argumentsJson: JSON.stringify({ text }) };
  for await (const { event } of tools.callTool({ ...request, callId: randomUUID() })) {
    if (event.case === "result")
      return event.value.isError ? event.value.outputJson : JSON.parse(event.value.outputJson);
  }
  return "no result";
}

const ways: Record<Way, () => Promise<unknown>> = {
  "bus-stdio": () => callOverBus(SOURCES.stdio),
  "bus-http": () => callOverBus(SOURCES.http),
  "sdk-stdio": await openSdk(new StdioClientTransport({ command, args })),
  "sdk-http": await openSdk(new StreamableHTTPClientTransport(new URL(url))),
};

async function measure({ way, inFlight, durationMs }: Order): Promise<Report> {
  const latenciesMs: number[] = [];
  const endsAt = performance.now() + durationMs;
  const worker = async () => {
    for (let before = performance.now(); before < endsAt; ) {
      const answer = await ways[way]();
      if (answer !== text) throw new Error(`${way} was answered with ${JSON.stringify(answer)}`);
      const after = performance.now();
      latenciesMs.push(after - before);
      before = after;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, worker));
  return { p50Ms: medianOf(latenciesMs) };
}

process.on("message", (order: Order) => {
  measure(order).then(
    (report) => process.send?.({ kind: "report", ...report }),
    (error: unknown) => process.send?.({ kind: "fault", text: `${order.way}: ${error}` }),
  );
});
process.on("disconnect", () => process.exit());
process.send?.({ kind: "ready" });
