import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { clientFor } from "../../services/clients.ts";
import { openBenchSuite } from "../measuring/bench-suite.ts";
import { openPeer } from "../measuring/peer.ts";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import { AGENT, type Order, type Report, SESSION, SOURCE, TOOL, WORKER } from "./setting.ts";

/*
 * How long does a call of a Python function take whose worker is warm? Router, pool, caller and the nats-server are processes of
 * their own, and the worker is one of the pool's.
 *
 *   worker_call     over the bus, as a session calls        beside the same worker on a bare pipe
 *   worker_execute  over the bus, to the pool alone         beside the same
 *
 * Each round measures every way once, in alternating order; the medians of the rounds are told.
 */

const bench = "workers";
const AT_WORK = 16;

const ORDERS = {
  call: ["call", 1],
  execute: ["execute", 1],
  pipe: ["pipe", 1],
  call16: ["call", AT_WORK],
  pipe16: ["pipe", AT_WORK],
} as const;

type Name = keyof typeof ORDERS;

export interface WorkersOptions {
  rounds: number;
  roundMs: number;
  onProgress: (message: string) => void;
}

export async function* measureWorkers(options: WorkersOptions): AsyncIterable<BenchResult> {
  const series = await runRounds(options);
  const latencies = (name: Name) => series[name].map(({ p50Ms }) => p50Ms);
  const rates = (name: Name) => series[name].map(({ perSecond }) => perSecond);
  yield comparedResult({ bench, metric: "worker_call_p50_ms", unit: "ms" }, latencies("call"), latencies("pipe"));
  yield comparedResult({ bench, metric: "worker_execute_p50_ms", unit: "ms" }, latencies("execute"), latencies("pipe"));
  yield comparedResult({ bench, metric: "worker_per_s_16", unit: "1/s" }, rates("call16"), rates("pipe16"));
}

async function runRounds({ rounds, roundMs, onProgress }: WorkersOptions): Promise<Record<Name, Report[]>> {
  await using stack = new AsyncDisposableStack();
  const caller = await openCaller(stack);
  const names = Object.keys(ORDERS) as Name[];
  const series = Object.fromEntries(names.map((name) => [name, [] as Report[]])) as Record<Name, Report[]>;
  const measured = (name: Name, durationMs: number) => {
    const [way, inFlight] = ORDERS[name];
    const answer = caller.answer();
    caller.child.send({ way, inFlight, durationMs } satisfies Order);
    return answer;
  };
  onProgress("warming up");
  for (const name of names) await measured(name, 2 * roundMs);
  for (let round = 0; round < rounds; round += 1) {
    onProgress(`round ${round + 1} of ${rounds}`);
    for (const name of round % 2 === 0 ? names : names.toReversed()) series[name].push(await measured(name, roundMs));
  }
  return series;
}

async function openCaller(stack: AsyncDisposableStack) {
  let path = "";
  const { login, bus } = await openBenchSuite(stack, {
    services: ["tool-router", "worker-pool", "spaces"],
    agent: { name: AGENT, tools: { use: [`@${SOURCE}/${TOOL}`] }, workers: [{ name: SOURCE }] },
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
  const args = [JSON.stringify({ login, path })];
  return openPeer<Report>(stack, new URL("caller.ts", import.meta.url), { args });
}
