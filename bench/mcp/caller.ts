/** Calls each way, and says how long a call took. */
import { randomUUID } from "node:crypto";
import { type CallToolResult, Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { clientFor } from "../../services/clients.ts";
import type { Login } from "../measuring/bench-suite.ts";
import { measureLatencies } from "../measuring/latencies.ts";
import { answerOrders, argumentOf, sayReady } from "../measuring/peer-process.ts";
import { type Order, SESSION, SOURCES, TOOL, type Way } from "./setting.ts";

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

async function callEcho(way: Way): Promise<void> {
  const answer = await ways[way]();
  if (answer !== text) throw new Error(`${way} was answered with ${JSON.stringify(answer)}`);
}

answerOrders(({ way, ...load }: Order) => measureLatencies(() => callEcho(way), load));
sayReady();
