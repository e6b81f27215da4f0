/** Calls each way, and says how long a call took. */
import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { Client as McpClient } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { CallToolRequestSchema, type CallToolResponse, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { clientFor } from "../../services/clients.ts";
import { measureLatencies } from "../measuring/latencies.ts";
import { answerOrders, argumentOf, sayReady } from "../measuring/peer-process.ts";
import { openHttpClient } from "./http-client.ts";
import {
  type CallerArguments,
  INTERNAL_TOOL,
  MCP_SERVER,
  MCP_TOOL,
  type Order,
  PROCESS_TOOL,
  RAW_SUBJECT,
  SESSION,
  type Way,
} from "./setting.ts";

const { login, gatewayUrl, baselineUrl, server } = argumentOf<CallerArguments>();
const bus = await openBus({ ...login, name: "caller" });
const [command = "", ...args] = server;
const mcp = new McpClient({ name: "bench", version: "1" }, { versionNegotiation: { mode: "auto" } });
await mcp.connect(new StdioClientTransport({ command, args }));

const overHttp2 = (baseUrl: string) =>
  createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true, acceptCompression: [] });
const tools = clientFor(bus, ToolService);
const callOverHttp = openHttpClient(gatewayUrl);
const agents = createClient(AgentService, overHttp2(gatewayUrl));
const baselineAgents = createClient(AgentService, overHttp2(baselineUrl));

const text = "a line of text that comes back";
const argumentsJson = JSON.stringify({ text });

type Call = (name: string) => Promise<CallToolResponse[]>;

const onBus: Call = (name) => Array.fromAsync(tools.callTool(requestOf(name)));
const onGateway: Call = (name) => callOverHttp(create(CallToolRequestSchema, requestOf(name)));

function requestOf(name: string) {
  return { callId: randomUUID(), sessionId: SESSION, name, argumentsJson };
}

async function callTool(call: Call, name: string): Promise<string> {
  const results = (await call(name)).flatMap(({ event }) => (event.case === "result" ? [event.value] : []));
  if (results.length !== 1 || results[0]?.isError)
    throw new Error(`${name} was answered with ${JSON.stringify(results)}`);
  return results[0]?.outputJson ?? "";
}

async function callEcho(call: Call): Promise<void> {
  const answer = await callTool(call, `@${MCP_SERVER}/${MCP_TOOL}`);
  if (answer !== JSON.stringify(text)) throw new Error(`the MCP server's tool was answered with ${answer}`);
}

const ways: Record<Way, () => Promise<unknown>> = {
  raw: () => bus.connection.request(RAW_SUBJECT, argumentsJson, { timeout: 10_000 }),
  async internal() {
    const answer = await callTool(onBus, INTERNAL_TOOL);
    if (!answer.includes(text)) throw new Error(`the internal tool was answered with ${answer}`);
  },
  sdk: () => mcp.callTool({ name: MCP_TOOL, arguments: { text } }),
  mcpBus: () => callEcho(onBus),
  mcpHttp: () => callEcho(onGateway),
  unaryHttp: () => agents.listAgents({}),
  unaryBaseline: () => baselineAgents.listAgents({}),
};

answerOrders(({ way, ...load }: Order) => measureLatencies(ways[way], load));
const serverPid = JSON.parse(await callTool(onBus, `@${MCP_SERVER}/${PROCESS_TOOL}`));
sayReady({ serverPid });
