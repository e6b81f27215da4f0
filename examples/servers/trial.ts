import { createConnection } from "node:net";
import { delimiter, dirname } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { textFromExit } from "#runtime/lifecycle/child-process/exit.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { until } from "#runtime/time/until.ts";
import type { Connection } from "../../cli/connection.ts";
import { resultOfToolCall } from "../../cli/requests/tool-call.ts";
import { emptyCaches } from "./place.ts";
import type { Place, PublicServer } from "./public-server.ts";

/** Long enough to fetch and build it where nothing is cached. */
const START_MS = 300_000;
const CALL_MS = 120_000;
const sourceWait = durationFromMs(10_000);

export interface Trial {
  readonly connection: Connection;
  readonly server: PublicServer;
  readonly place: Place;
  /** Starts what is installed, with the machine's own caches. */
  readonly isShort: boolean;
}

/** What came of the listing of a server. */
export interface Listing {
  readonly sessionId: string;
  /** The revision of MCP that was spoken. */
  readonly revision: string;
  readonly tools: number;
  /** Until its tools were listed, from its start: with nothing fetched, and in a second session. */
  readonly firstMs: number;
  readonly secondMs: number;
}

/** Has an agent with the server alone, and lists its tools in one session, and in a second one. */
export async function list(trial: Trial, stack: AsyncDisposableStack): Promise<Listing> {
  const { connection, server } = trial;
  const config = server.url === undefined ? startedByBridge(trial) : await startedHere(trial, server.url, stack);
  const agent = {
    name: server.name,
    model: { provider: "scripted", model: "hello.json" },
    tools: { use: [`@${server.name}/*`] },
    sources: [{ name: server.name, provider: "mcp", config: config.entry }],
  };
  await connection.client(AgentService).applyAgent({ agent });
  const first = await listedIn(connection, server.name);
  await first.close();
  const { sessionId, ms, tools, close } = await listedIn(connection, server.name);
  stack.defer(close);
  const { connections } = await connection.client(McpServerService).listConnections({ sessionId });
  const revision = connections.find((held) => held.server === server.name)?.protocolVersion ?? "";
  return { sessionId, revision, tools: tools.length, firstMs: config.startMs + first.ms, secondMs: ms };
}

/** How long the call took; throws what it was answered with instead of what is expected. */
export async function call({ connection, server, place }: Trial, sessionId: string): Promise<number> {
  const { tool, arguments: argumentsOf, expect } = server.call;
  const request = { sessionId, name: `@${server.name}/${tool}`, argumentsJson: JSON.stringify(argumentsOf(place)) };
  const startedAt = performance.now();
  const { isError, outputJson } = await resultOfToolCall(connection, request, AbortSignal.timeout(CALL_MS));
  const ms = performance.now() - startedAt;
  if (isError || !outputJson.includes(expect)) throw new Error(`${tool} answered ${outputJson}`);
  return ms;
}

/** Its entry in the agent's file, and how long it took to start it. */
interface Configured {
  readonly entry: JsonObject;
  readonly startMs: number;
}

function startedByBridge(trial: Trial): Configured {
  const [command = "", ...args] = commandOf(trial);
  return { entry: { command, args, env: environmentOf(trial) }, startMs: 0 };
}

/** A server that listens is nobody's child but ours. */
async function startedHere(
  trial: Trial,
  urlOf: (place: Place) => string,
  stack: AsyncDisposableStack,
): Promise<Configured> {
  const { server, place } = trial;
  const [command = "", ...args] = commandOf(trial);
  const startedAt = performance.now();
  const PATH = [process.env.PATH, dirname(await findUv())].join(delimiter);
  const env = { ...process.env, PATH, ...environmentOf(trial) };
  const child = stack.use(await openChildProcess({ command, args, cwd: place.directory, env }));
  await until(() => child.hasExited || isListening(place.port), {
    timeoutMs: START_MS,
    what: `${server.name} to listen`,
  });
  if (child.hasExited) throw new Error(textFromExit(await child.exited));
  const transport = server.transport && { transport: server.transport };
  return { entry: { url: urlOf(place), ...transport }, startMs: performance.now() - startedAt };
}

function commandOf({ server, place, isShort }: Trial): readonly string[] {
  return (isShort ? server.short : undefined)?.(place) ?? server.command(place);
}

function environmentOf({ server, place, isShort }: Trial): Record<string, string> {
  return { ...(!isShort && emptyCaches(place)), ...server.env?.(place) };
}

async function listedIn(connection: Connection, agent: string) {
  const sessions = connection.client(SessionService);
  const { session } = await sessions.createSession({ agent });
  const sessionId = session?.id ?? "";
  const scope = { case: "session", value: { sessionId } } as const;
  const tools = connection.client(ToolService);
  const startedAt = performance.now();
  const pages = await until(
    async () => {
      const listed = await allPages((pageToken) => tools.listTools({ scope, pageToken, sourceWait }));
      return listed[0].sources.some(({ starting }) => starting) ? undefined : listed;
    },
    { timeoutMs: START_MS, what: `${agent} to start` },
  );
  const ms = performance.now() - startedAt;
  const source = pages[0].sources.find(({ source }) => source === agent);
  if (!source?.available) throw new Error(`its tools are not listed: ${source?.reason}`);
  const listed = pages.flatMap((page) => page.tools).filter(({ reference }) => reference.startsWith(`@${agent}/`));
  return { sessionId, ms, tools: listed, close: async () => void (await sessions.closeSession({ sessionId })) };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: "127.0.0.1" });
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
