import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { openNatsServer } from "#runtime/bus/nats-server/nats-server.ts";
import { until } from "#runtime/time/until.ts";
import { openSuite } from "../cli/suite/suite.ts";
import { busUsers } from "../services/bus-users.ts";
import { clientFor } from "../services/clients.ts";
import { openPeer } from "./measuring/peer.ts";
import { type BenchResult, comparedResult } from "./measuring/result.ts";
import { AGENT, type Order, type Report, SESSION, SOURCE, TOOL, WORKER } from "./workers/setting.ts";

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
  const directory = await mkdtemp(join(tmpdir(), "bench-workers-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const nats = stack.use(await openNatsServer({ directory: join(directory, "nats"), users: busUsers }));
  const [agents, workers] = [join(directory, "agents"), join(directory, "workers")];
  await Promise.all([agents, workers].map((path) => mkdir(path)));
  const agent = { name: AGENT, tools: { use: [`@${SOURCE}/${TOOL}`] }, workers: [{ name: SOURCE }] };
  await writeFile(join(agents, `${AGENT}.json`), JSON.stringify(agent));
  const path = join(workers, `${SOURCE}.py`);
  await writeFile(path, WORKER);
  const env = {
    TOOLBUS_AGENTS: agents,
    TOOLBUS_WORKERS: workers,
    TOOLBUS_HOSTED: join(directory, "hosted"),
    TOOLBUS_LOG_LEVEL: "warn",
    NATS_URL: nats.url,
    TOOLBUS_BUS_CREDENTIALS: nats.credentials,
  };
  const services = ["tool-router", "worker-pool", "spaces"];
  const options = { directory, port: 0, natsUrl: nats.url, isolate: true, services, env, auth: "none" } as const;
  stack.use(await openSuite(options));
  const login = { url: nats.url, login: nats.login };
  const bus = stack.use(await openBus({ ...login, name: "bench" }));
  const sessions = clientFor(bus, SessionService);
  await until(() => sessions.createSession({ agent: AGENT, sessionId: SESSION }).catch(() => undefined), {
    timeoutMs: 30_000,
  }); // its file is being read
  const args = [JSON.stringify({ login, path })];
  return openPeer<Report>(stack, new URL("workers/caller.ts", import.meta.url), { args });
}
