import { randomUUID } from "node:crypto";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { clientFor } from "../../services/clients.ts";
import { type BenchSuite, openBenchSuite } from "../measuring/bench-suite.ts";
import { type Latencies, type Load, measureLatencies } from "../measuring/latencies.ts";
import { openPeer } from "../measuring/peer.ts";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import type { Rounds } from "../measuring/rounds.ts";
import { openParts } from "./parts.ts";
import { AGENT, CALLER, TOOL } from "./setting.ts";

/*
 * How long does a call take of a tool of the program that opened the session? It is asked for over the bus, as a run asks; the
 * program is a process of its own, attached over HTTP/2, and answers at once with what it was asked. Router, relay, gateway and the
 * nats-server are processes, too. Its baseline is what the steps of its way take by themselves (parts.ts).
 */

const bench = "relay";
const AT_WORK = 200;

export interface RelayOptions extends Rounds {
  /** How many sessions have a caller attached at once. */
  readonly sessions: number;
}

/** The sessions are called in turn. */
interface Order extends Load {
  readonly sessionIds: readonly string[];
}

export async function* measureRelay(options: RelayOptions): AsyncIterable<BenchResult> {
  await using stack = new AsyncDisposableStack();
  const suite = await openBenchSuite(stack, {
    services: ["gateway", "tool-router", "caller-relay", "spaces"],
    agent: { name: AGENT, tools: { use: ["*"] } },
  });
  const sessions = clientFor(suite.bus, SessionService);
  await until(() => sessions.createSession({ agent: AGENT }).catch(() => undefined), { timeoutMs: 30_000 }); // its file is being read
  const sessionIds = await openCaller(stack, suite, 1);
  const ms = (metric: string) => ({ bench, metric, unit: "ms" });
  const { alone, many, parts } = await runRounds(suite, sessionIds, {
    ...options,
    bare: await openParts(stack, suite),
  });
  yield comparedResult(
    ms("caller_call_p50_ms"),
    alone.map(({ p50Ms }) => p50Ms),
    parts,
  );
  yield comparedResult(
    ms(`caller_call_p95_ms_${AT_WORK}`),
    many.map(({ p95Ms }) => p95Ms),
  );

  options.onProgress(`attaching ${options.sessions} sessions`);
  const held = await openCaller(stack, suite, options.sessions);
  const each = await Promise.all(held.map((sessionId) => call(suite, sessionId).then(() => 1)));
  yield comparedResult({ bench, metric: "caller_sessions_held", unit: "sessions" }, [each.length]);
  const order = { inFlight: 1, durationMs: 3 * options.roundMs, sessionIds: held };
  await measured(suite, order); // the router and the relay are done with the burst
  const among = await measured(suite, order);
  yield comparedResult(
    ms(`caller_call_p50_ms_of_${options.sessions}`),
    [among.p50Ms],
    alone.map(({ p50Ms }) => p50Ms),
  );
}

async function runRounds(
  suite: BenchSuite,
  sessionIds: readonly string[],
  options: RelayOptions & { bare: (durationMs: number) => Promise<number> },
) {
  const { rounds, roundMs: durationMs, onProgress, bare } = options;
  const orders = {
    alone: { inFlight: 1, durationMs, sessionIds },
    many: { inFlight: AT_WORK, durationMs, sessionIds },
  };
  onProgress("warming up");
  for (const order of [orders.many, orders.alone]) await measured(suite, { ...order, durationMs: 3 * durationMs });
  const reports: Record<keyof typeof orders, Latencies[]> = { alone: [], many: [] };
  const parts: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    onProgress(`round ${round + 1} of ${rounds}`);
    reports.alone.push(await measured(suite, orders.alone));
    reports.many.push(await measured(suite, orders.many));
    parts.push(await bare(durationMs));
  }
  return { ...reports, parts };
}

/** The sessions that the program holds, once all their streams are attached. */
async function openCaller(
  stack: AsyncDisposableStack,
  { gatewayUrl }: BenchSuite,
  sessions: number,
): Promise<readonly string[]> {
  const { hello } = await openPeer(stack, new URL("caller.ts", import.meta.url), {
    argument: { gatewayUrl, sessions },
  });
  return hello.sessionIds as string[];
}

async function call({ bus }: BenchSuite, sessionId: string): Promise<void> {
  const text = randomUUID();
  const request = { callId: text, sessionId, name: `${CALLER}_${TOOL}`, argumentsJson: JSON.stringify({ text }) };
  for await (const { event } of clientFor(bus, ToolService).callTool(request)) {
    if (event.case === "result" && !event.value.isError && event.value.outputJson.includes(text)) return;
    if (event.case === "result") throw new Error(`${sessionId} answered ${event.value.outputJson}`);
  }
  throw new Error(`the call of ${sessionId} ended without a result`);
}

function measured(suite: BenchSuite, { sessionIds, ...load }: Order): Promise<Latencies> {
  let turn = 0;
  return measureLatencies(() => call(suite, sessionIds[turn++ % sessionIds.length] ?? ""), load);
}
