import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openNatsServer } from "#runtime/bus/nats-server/nats-server.ts";
import { openPeer } from "../measuring/peer.ts";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import { measureRounds } from "../measuring/rounds.ts";
import type { Order, Report } from "./setting.ts";

/*
 * What does a call cost on the bus? Server and client are processes of their own, with the interceptors and windows of
 * production; each round measures every way once, in alternating order, and the medians of the rounds are compared.
 */

const ROUNDS = 5;
const ROUND_MS = 1_000;
const bench = "bus";

const ORDERS = {
  raw64: { kind: "unary", way: "raw", inFlight: 64, durationMs: ROUND_MS },
  bus64: { kind: "unary", way: "bus", inFlight: 64, durationMs: ROUND_MS },
  h264: { kind: "unary", way: "h2", inFlight: 64, durationMs: ROUND_MS },
  raw1: { kind: "unary", way: "raw", inFlight: 1, durationMs: ROUND_MS },
  bus1: { kind: "unary", way: "bus", inFlight: 1, durationMs: ROUND_MS },
  stream: { kind: "stream", durationMs: ROUND_MS },
} as const satisfies Record<string, Order>;

type Name = keyof typeof ORDERS;

export async function* measureBus(): AsyncIterable<BenchResult> {
  const series = await runRounds();
  yield comparedResult({ bench, metric: "unary_per_s_64", unit: "1/s" }, series.bus64, series.raw64);
  yield comparedResult({ bench, metric: "unary_p50_ms_1", unit: "ms" }, series.bus1, series.raw1);
  yield comparedResult({ bench, metric: "unary_per_s_64_over_h2", unit: "1/s" }, series.bus64, series.h264);
  yield comparedResult({ bench, metric: "stream_mb_per_s", unit: "MB/s" }, series.stream);
}

async function runRounds(): Promise<Record<Name, number[]>> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "bench-bus-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const { url, login } = stack.use(await openNatsServer({ directory }));
  const open = (program: string, argument: object) =>
    openPeer<Report>(stack, new URL(`${program}.ts`, import.meta.url), { argument });
  const server = await open("server", { url, login });
  const client = await open("client", { url, login, ...server.hello });
  const names = Object.keys(ORDERS) as Name[];
  for (const name of names) await client.ask(ORDERS[name]); // warms up
  return await measureRounds(names, { rounds: ROUNDS, onProgress() {} }, async (name) => {
    const order = ORDERS[name];
    return numberFromReport(await client.ask(order), order);
  });
}

function numberFromReport(report: Report, order: Order): number {
  if (report.kind === "stream") return report.megabytesPerSecond;
  return order.kind === "unary" && order.inFlight === 1 ? report.p50Ms : report.perSecond;
}
