import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { clientFor } from "../../services/clients.ts";
import { type BenchSuite, openBenchSuite } from "../measuring/bench-suite.ts";
import type { Latencies } from "../measuring/latencies.ts";
import { openPeer } from "../measuring/peer.ts";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import { measureRounds, type Rounds } from "../measuring/rounds.ts";
import { bytesOfDescendants } from "./memory.ts";
import { AGENT, type Order, SESSION, SOURCES, TOOL, type Way } from "./setting.ts";

/*
 * How long does a call of an MCP server's tool take, as a session calls it over the bus, and what does a session hold that has a
 * server of its own? Beside each stands the SDK's own client at the same server. Router, bridge, caller, the nats-server and the
 * servers are processes of their own.
 *
 * Each way is used for a while first, with many calls at a time. Each round then measures every way once, in alternating order;
 * the medians of the rounds are told. Memory is what all processes hold more than before, by the number of sessions, shared pages
 * counted once; of the SDK's, that of its servers alone.
 */

const bench = "mcp";
const WARM_UP = 16;
const WAYS: readonly Way[] = ["bus-stdio", "sdk-stdio", "bus-http", "sdk-http"];
const server = [process.execPath, fileURLToPath(new URL("../call/mcp-server.ts", import.meta.url))] as const;

export interface McpOptions extends Rounds {
  /** How many sessions with a server of their own are opened to see what one holds. */
  readonly sessions: number;
}

export async function* measureMcp(options: McpOptions): AsyncIterable<BenchResult> {
  await using stack = new AsyncDisposableStack();
  const { hello } = await openPeer(stack, new URL("http-server.ts", import.meta.url));
  const suite = await openSuite(stack, `${hello.url}`);
  await listedIn(suite, SESSION);
  const series = await runRounds(suite, `${hello.url}`, options);
  const ms = (metric: string) => ({ bench, metric, unit: "ms" });
  yield comparedResult(ms("stdio_echo_p50_ms"), series["bus-stdio"], series["sdk-stdio"]);
  yield comparedResult(ms("http_echo_p50_ms"), series["bus-http"], series["sdk-http"]);

  const megabytes = { bench, metric: "sessions_of_stdio_mb", unit: "MB" };
  const held = await megabytesOf(options, (index) => listedIn(suite, `held-${index}`));
  yield comparedResult(megabytes, [held], [await megabytesOf(options, () => openSdk(stack))]);
}

async function openSuite(stack: AsyncDisposableStack, url: string): Promise<BenchSuite> {
  const [command, ...args] = server;
  const servers = [
    { name: SOURCES.stdio, command, args },
    { name: SOURCES.http, url },
  ];
  return openBenchSuite(stack, {
    services: ["tool-router", "mcp-bridge", "spaces"],
    agent: { name: AGENT, tools: { use: ["@*/*"] }, mcp: { servers } },
  });
}

/** Opens a session; both its servers are connected when it is told. */
async function listedIn({ bus }: BenchSuite, sessionId: string): Promise<void> {
  const sessions = clientFor(bus, SessionService);
  const open = () => sessions.createSession({ agent: AGENT, sessionId }).catch(() => undefined); // its file is being read
  await until(open, { timeoutMs: 30_000 });
  const scope = { case: "session", value: { sessionId } } as const;
  const request = { scope, sourceWait: { seconds: 30n, nanos: 0 } };
  const { tools, sources } = await clientFor(bus, ToolService).listTools(request);
  const missing = Object.values(SOURCES).filter(
    (source) => !tools.some(({ reference }) => reference === `@${source}/${TOOL}`),
  );
  if (missing.length > 0) throw new Error(`${missing} is not listed: ${JSON.stringify(sources)}`);
}

async function runRounds({ login }: BenchSuite, url: string, options: Rounds): Promise<Record<Way, number[]>> {
  await using stack = new AsyncDisposableStack();
  const argument = { login, server, url };
  const caller = await openPeer<Latencies>(stack, new URL("caller.ts", import.meta.url), { argument });
  const measured = async (order: Order) => (await caller.ask(order)).p50Ms;
  const { rounds, roundMs: durationMs, onProgress } = options;
  onProgress("warming up");
  for (const way of WAYS) await measured({ way, inFlight: WARM_UP, durationMs: rounds * durationMs });
  return await measureRounds(WAYS, options, (way) => measured({ way, inFlight: 1, durationMs }));
}

/** What one of them adds; the first few are not counted, with whom the services grow once and for all. */
async function megabytesOf(
  { sessions, onProgress }: McpOptions,
  open: (index: number) => Promise<void>,
): Promise<number> {
  onProgress(`opening ${sessions} sessions`);
  const warmUp = Math.ceil(sessions / 4);
  for (let index = 0; index < warmUp; index += 1) await open(index);
  const before = bytesOfDescendants();
  for (let index = warmUp; index < warmUp + sessions; index += 1) await open(index);
  return (bytesOfDescendants() - before) / sessions / 1e6;
}

async function openSdk(stack: AsyncDisposableStack): Promise<void> {
  const [command, ...args] = server;
  const client = new Client({ name: "bench", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StdioClientTransport({ command, args }));
  stack.defer(() => client.close());
}
