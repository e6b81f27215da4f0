// The door for MCP clients before services of which each test writes what it needs; nothing else is there.

import { createSecretKey } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient, createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { noteShutdown } from "#runtime/rpc/http/connect/reply.ts";
import type { PathTaker } from "#runtime/rpc/http/messages.ts";
import { createInSpan } from "#runtime/telemetry/in-span.ts";
import { createHealth } from "../../../health.ts";
import { createMcpDoor, type McpDoorOptions } from "../../mcp-door.ts";
import { McpSessions } from "../../revisions/sessions.ts";
import { HeldCalls } from "../../tasks/held-calls.ts";
import { createResourceMetadata } from "../resource-metadata.ts";

const AGENT = "clerk";

export interface TestDoorOptions extends Partial<Pick<McpDoorOptions, "onFault" | "takeCall">> {
  readonly tools?: Partial<ServiceImpl<typeof ToolService>>;
  readonly calls?: Partial<ServiceImpl<typeof ToolCallService>>;
  readonly content?: Partial<ServiceImpl<typeof McpContentService>>;
  readonly agents?: Partial<ServiceImpl<typeof AgentService>>;
  /** Waited for before a session is told. */
  readonly whenSessionAsked?: () => unknown;
  /** Those that stand before the door. */
  readonly before?: readonly PathTaker[];
}

export interface TestDoor extends AsyncDisposable {
  /** Ends the waiting for answers, as a server that stops does. */
  shutdown(): void;
  readonly server: Server;
  /** Where the agent's tools are. */
  readonly url: string;
}

/** Every session is there, with its id, and of the agent. */
export async function openTestDoor(options: TestDoorOptions): Promise<TestDoor> {
  const { tools = {}, calls = {}, content = {}, agents = {}, whenSessionAsked, before = [], ...given } = options;
  const transport = createRouterTransport((router) =>
    router
      .service(ToolService, tools)
      .service(ToolCallService, calls)
      .service(McpContentService, content)
      .service(AgentService, agents)
      .service(SessionService, {
        createSession: ({ agent }) => ({ session: { id: "s1", agent } }),
        async getSession({ sessionId }) {
          await whenSessionAsked?.();
          return { session: { id: sessionId, agent: AGENT } };
        },
      }),
  );
  const stateKey = createSecretKey(new Uint8Array(32));
  const [stopping, shutdown] = [new AbortController(), new AbortController()];
  const isServing = async () => true;
  const health = createHealth({
    services: [],
    processOf: String,
    isServing,
    storageFault: () => undefined,
    intervalMs: 1_000,
  });
  const door = createMcpDoor({
    enter: async () => ({ principal: "alice", isOperator: false }),
    stateKey,
    tools: createClient(ToolService, transport),
    calls: createClient(ToolCallService, transport),
    content: createClient(McpContentService, transport),
    agents: createClient(AgentService, transport),
    sessions: new McpSessions(createClient(SessionService, transport), stateKey),
    held: new HeldCalls(),
    takeCall: () => () => {},
    stopping: stopping.signal,
    onFault: () => {},
    inSpan: createInSpan(undefined),
    maxBytes: 1_000_000,
    metadata: createResourceMetadata({ publicUrl: undefined, tokens: undefined }),
    transportOf: () => transport,
    health,
    ...given,
  });
  const server = createServer((request, response) => {
    noteShutdown(response, shutdown.signal);
    const isTaken = [...before, door.takes].some((takes) => takes(request, response, request));
    if (!isTaken) response.writeHead(404).end("nothing takes it");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    server,
    shutdown: () => shutdown.abort(new Failure("unavailable", "it stops", { reason: "INSTANCE_STOPPING" })),
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp/${AGENT}`,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      server.close();
    },
  };
}

interface PostOptions {
  readonly version?: string;
  readonly signal?: AbortSignal;
  readonly headers?: Record<string, string>;
}

/** Sends a message as a client does that has a session. */
export function postMessage(
  url: string,
  message: object,
  { version = "2025-11-25", signal, headers = {} }: PostOptions = {},
): Promise<Response> {
  return fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-session-id": "s1",
      "mcp-protocol-version": version,
      ...headers,
    },
    body: JSON.stringify(message),
    signal: signal ?? null,
  });
}

/** Calls a tool without arguments, and gives what the client is told. */
export async function callTool(url: string, name: string): Promise<string> {
  const answer = await postMessage(url, {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name, arguments: {} },
  });
  return answer.text();
}
