/*
 * What does a run cost that waits for its client? So many runs, each in a session of its own, are started and park; then some of
 * them, picked at random, get their outputs.
 *
 * `parked_<service>_mb`: by how much the resident memory of a service has grown, once all are parked, nothing moves and its
 * garbage is collected; the baseline is what it was after the first ones. `wake_p50_ms`: from the submission of an output to the claim of the run, as the
 * server stored it. `broker_…`: what the broker pays.
 */

import { setTimeout } from "node:timers/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { readSubject } from "#runtime/bus/read.ts";
import { until } from "#runtime/time/until.ts";
import { residentBytesOf } from "./loop/cpu.ts";
import { quiet } from "./loop/plan.ts";
import { quantileOf } from "./loop/quantile.ts";
import { loopRooms, openWorld, startRun, type World } from "./loop/world.ts";
import { type BenchResult, rounded } from "./result.ts";

const bench = "parked";
const atOnce = 32;
const mib = 2 ** 20;
const collectingMs = 3_000;

export interface ParkedOptions {
  /** How many runs are parked. */
  readonly runs: number;
  /** How many are parked before the memory is looked at first. */
  readonly warmUp?: number;
  /** How many are woken. */
  readonly wakes?: number;
  /** For how long the router follows the offers of a session that nobody uses: the memory is looked at after that. */
  readonly idleMs?: number;
  /** How long nothing is done before the memory is looked at. */
  readonly settleMs?: number;
  readonly onProgress?: (message: string) => void;
}

export async function* measureParked(options: ParkedOptions): AsyncIterable<BenchResult> {
  const { runs, warmUp = 5_000, wakes = 200, idleMs = 5_000, settleMs = 15_000, onProgress } = options;
  const collector = new URL("parked/collect-garbage.ts", import.meta.url).href;
  const env = { TOOLBUS_CONTEXT_IDLE: `${idleMs}ms`, NODE_OPTIONS: `--import ${collector}` };
  await using world = await openWorld({ rooms: loopRooms, env });
  await park(world, Math.min(warmUp, runs), onProgress);
  await settled(world, settleMs);
  const before = await residents(world);
  const diskBefore = await storedBytes(world);
  const parked = await park(world, runs, onProgress);
  await settled(world, settleMs);
  const after = await residents(world);
  for (const [name, bytes] of after) {
    const grown = (bytes - (before.get(name) ?? 0)) / mib;
    const metric = name === "nats-server" ? "broker_memory_mb" : `parked_${name.replaceAll("-", "_")}_mb`;
    yield result(metric, grown, "MiB", (before.get(name) ?? 0) / mib);
  }
  yield result("broker_disk_mb", ((await storedBytes(world)) - diskBefore) / mib, "MiB");
  onProgress?.(`waking ${wakes} of them`);
  const timesMs: number[] = [];
  for (let count = 0; count < Math.min(wakes, runs); count += 1) {
    const index = Math.floor((parked.length * count) / wakes + Math.random() * (parked.length / wakes));
    timesMs.push(await wake(world, parked[index] ?? ""));
  }
  yield result("wake_p50_ms", quantileOf(timesMs, 0.5), "ms");
  yield result("wake_p99_ms", quantileOf(timesMs, 0.99), "ms");
}

const asking = { options: { functionTools: [{ name: "ask" }] } };

/** Starts runs until so many have been, and waits until the last ones are parked; gives their ids. */
async function park(world: World, count: number, onProgress?: (message: string) => void): Promise<string[]> {
  const ids: string[] = [];
  const plan = { ...quiet, tool: "ask", deltas: 1 };
  const hand = async () => {
    while (ids.length < count) {
      const place = ids.push("") - 1;
      const { id } = await startRun(world, { ...plan, id: "" }, asking);
      ids[place] = id;
      await whenParked(world, id);
      if ((place + 1) % 5_000 === 0) onProgress?.(`${place + 1} of ${count} parked`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, hand));
  return ids;
}

async function whenParked({ runs }: World, runId: string): Promise<void> {
  const leaving = new AbortController(); // a stream that is left goes on until its signal aborts
  try {
    for await (const { update } of runs.watchRun({ runId }, { signal: leaving.signal })) {
      if (update.case !== "event") continue;
      const { event } = update.value;
      if (event.case === "parked") return;
      if (event.case === "ended") throw new Error(`run ${runId} ended: ${event.value.reason} ${event.value.error}`);
    }
  } finally {
    leaving.abort(new Error("the run is parked"));
  }
}

/** Nothing waits in the queue of wake-ups, and what the services keep for a while is gone. */
async function settled({ bus }: World, settleMs: number): Promise<void> {
  await until(async () => (await bus.manager.streams.info("TOOLBUS_WAKES")).state.messages === 0, {
    timeoutMs: 120_000,
    what: "the queue of wake-ups to be empty",
  });
  await setTimeout(settleMs);
}

async function residents(world: World): Promise<Map<string, number>> {
  const orchestrator = { room: "orchestrator", pid: world.orchestrators[0]?.pid };
  const running = [...world.suite.services, orchestrator];
  const pids = new Map(running.flatMap(({ room, pid }) => (pid === undefined ? [] : [[room, pid] as const])));
  for (const pid of pids.values()) process.kill(pid, "SIGUSR2");
  await setTimeout(collectingMs);
  return new Map(
    [...pids, ["nats-server", world.server.pid] as const].map(([name, pid]) => [name, residentBytesOf(pid)]),
  );
}

async function storedBytes({ bus }: World): Promise<number> {
  let bytes = 0;
  for await (const { state } of bus.manager.streams.list()) bytes += state.bytes;
  return bytes;
}

async function wake(world: World, runId: string): Promise<number> {
  const outputs = [{ callId: "call_0_0", result: { outputJson: '"here"' } }];
  const submittedAtMs = Date.now();
  await world.runs.submitOutputs({ runId, outputs });
  const claimedAtMs = await until(() => secondClaim(world, runId), {
    timeoutMs: 30_000,
    intervalMs: 10,
    what: "the claim of a run that was woken",
  });
  return claimedAtMs - submittedAtMs;
}

async function secondClaim({ bus }: World, runId: string): Promise<number | undefined> {
  for await (const { data, time } of readSubject(bus, `toolbus.run.${runId}`)) {
    const { event } = fromBinary(RunEventSchema, data);
    if (event.case === "claimed" && event.value.epoch === 2) return time.getTime();
  }
  return undefined;
}

function result(metric: string, value: number, unit: string, baseline: number | null = null): BenchResult {
  return { bench, metric, value: rounded(value), unit, baseline: baseline && rounded(baseline), ratio: null };
}
