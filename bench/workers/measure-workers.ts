import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { clientFor } from "../../services/clients.ts";
import { openBenchSuite } from "../measuring/bench-suite.ts";
import type { Latencies } from "../measuring/latencies.ts";
import { openPeer } from "../measuring/peer.ts";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import { measureRounds, type Rounds } from "../measuring/rounds.ts";
import { AGENT, type Order, SESSION, SOURCE, WORKER } from "./setting.ts";

/*
 * How long does a call of a Python function take whose worker is warm? Router, pool, caller and the nats-server are processes of
 * their own, and the worker is one of the pool's.
 *
 *   worker_call     over the bus, as a session calls        beside the same worker on a bare pipe
 *   worker_pure     the same of a function that is declared as pure, which needs no record
 *   worker_execute  over the bus, to the pool alone         beside the same
 *
 * Each round measures every way once, in alternating order; the medians of the rounds are told.
 */

const bench = "workers";
const AT_WORK = 16;

const ORDERS = {
  call: ["call", 1],
  pure: ["pure", 1],
  execute: ["execute", 1],
  pipe: ["pipe", 1],
  call16: ["call", AT_WORK],
  pure16: ["pure", AT_WORK],
  pipe16: ["pipe", AT_WORK],
} as const;

type Name = keyof typeof ORDERS;

export async function* measureWorkers(options: Rounds): AsyncIterable<BenchResult> {
  const series = await runRounds(options);
  const latencies = (name: Name) => series[name].map(({ p50Ms }) => p50Ms);
  const rates = (name: Name) => series[name].map(({ perSecond }) => perSecond);
  yield comparedResult({ bench, metric: "worker_call_p50_ms", unit: "ms" }, latencies("call"), latencies("pipe"));
  yield comparedResult({ bench, metric: "worker_pure_p50_ms", unit: "ms" }, latencies("pure"), latencies("pipe"));
  yield comparedResult({ bench, metric: "worker_execute_p50_ms", unit: "ms" }, latencies("execute"), latencies("pipe"));
  yield comparedResult({ bench, metric: "worker_per_s_16", unit: "1/s" }, rates("call16"), rates("pipe16"));
  yield comparedResult({ bench, metric: "worker_pure_per_s_16", unit: "1/s" }, rates("pure16"), rates("pipe16"));
}

async function runRounds(options: Rounds): Promise<Record<Name, Latencies[]>> {
  await using stack = new AsyncDisposableStack();
  const caller = await openCaller(stack);
  const names = Object.keys(ORDERS) as Name[];
  const measured = (name: Name, durationMs: number) => {
    const [way, inFlight] = ORDERS[name];
    return caller.ask({ way, inFlight, durationMs } satisfies Order);
  };
  options.onProgress("warming up");
  for (const name of names) await measured(name, 2 * options.roundMs);
  return await measureRounds(names, options, (name) => measured(name, options.roundMs));
}

async function openCaller(stack: AsyncDisposableStack) {
  let path = "";
  const { login, bus } = await openBenchSuite(stack, {
    services: ["tool-router", "worker-pool", "spaces"],
    agent: { name: AGENT, tools: { use: [`@${SOURCE}/*`] }, workers: [{ name: SOURCE }] },
    async settings(directory) {
      const [workers, hosted] = [join(directory, "workers"), join(directory, "hosted")];
      for (const folder of [workers, hosted]) await mkdir(folder);
      path = join(workers, `${SOURCE}.py`);
      await writeFile(path, WORKER);
      return { TOOLBUS_WORKERS: workers, TOOLBUS_HOSTED: hosted };
    },
  });
  const sessions = clientFor(bus, SessionService);
  await until(() => sessions.createSession({ agent: AGENT, sessionId: SESSION }).catch(() => undefined), {
    timeoutMs: 30_000,
  }); // its file is being read
  return openPeer<Latencies>(stack, new URL("caller.ts", import.meta.url), { argument: { login, path } });
}
