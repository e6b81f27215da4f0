/*
 * What does a run cost that waits for its client? So many runs, each in a session of its own, are started and park; then some of
 * them, picked at random, get their outputs, one at a time.
 *
 * `parked_<service>_mb`: by how much the resident memory of a service has grown, once all are parked, nothing moves and its
 * garbage is collected; the baseline is what it was after the first ones. `parked_<service>_heap_mb`: the same of what its
 * program holds. `started_per_s`: how many were parked each second, at a cost of `started_<service>_cpu_us` each.
 * `wake_p50_ms`: from the submission of an output until its client hears that the run is claimed. `broker_…`: what the broker
 * pays.
 */

import { cpuMicrosecondsOf } from "../loop/figures/cpu.ts";
import { quantileOf } from "../loop/figures/quantile.ts";
import { loopServices, openWorld, type World } from "../loop/world.ts";
import { type BenchResult, rounded } from "../measuring/result.ts";
import { type Footprint, type Holding, openFootprint } from "./footprint.ts";
import { type LiveRuns, openLiveRuns } from "./live-runs.ts";
import { startParked } from "./start.ts";

const bench = "parked";
const mib = 2 ** 20;

export interface ParkedOptions {
  /** How many runs are parked. */
  readonly runs: number;
  /** How many are parked before the memory is looked at first. */
  readonly warmUp?: number;
  /** How many are on their way at a time. */
  readonly atOnce?: number;
  /** How many are woken. */
  readonly wakes?: number;
  /** For how long the router follows the offers of a session that nobody uses: the memory is looked at after that. */
  readonly idleMs?: number;
  /** How long nothing is done before the memory is looked at. */
  readonly settleMs?: number;
  readonly onProgress?: (message: string) => void;
}

export async function* measureParked(options: ParkedOptions): AsyncIterable<BenchResult> {
  const { runs, warmUp = 5_000, atOnce = 64, wakes = 200, idleMs = 5_000, settleMs = 20_000 } = options;
  const onProgress = options.onProgress ?? (() => {});
  await using footprint = await openFootprint(settleMs, onProgress);
  const env = { TOOLBUS_CONTEXT_IDLE: `${idleMs}ms`, ...footprint.env };
  await using world = await openWorld({ services: loopServices, env });
  using live = await openLiveRuns(world);
  const start = (count: number) => startParked({ world, live, atOnce, onProgress }, count);
  const ids = await start(Math.min(warmUp, runs));
  const before = await footprint.of(world);
  const cpuBefore = cpuOf(world);
  const beganAtMs = performance.now();
  ids.push(...(await start(runs - ids.length)));
  const count = runs - Math.min(warmUp, runs);
  const seconds = (performance.now() - beganAtMs) / 1_000;
  if (count > 0) {
    yield result("started_per_s", count / seconds, "1/s");
    for (const [name, used] of cpuOf(world)) {
      yield result(`started_${nameOf(name)}_cpu_us`, (used - (cpuBefore.get(name) ?? 0)) / count, "us");
    }
  }
  yield* grownSince(before, await footprint.of(world));
  onProgress(`waking ${Math.min(wakes, runs)} of them`);
  yield* woken({ world, live }, sampleOf(ids, wakes));
}

function cpuOf({ suite, orchestrators, server }: World): Map<string, number> {
  const orchestrator = { service: "orchestrator", pid: orchestrators[0]?.pid };
  const running = [...suite.services, orchestrator, { service: "broker", pid: server.pid }];
  return new Map(running.flatMap(({ service, pid }) => (pid === undefined ? [] : [[service, cpuMicrosecondsOf(pid)]])));
}

function* grownSince(before: Footprint, after: Footprint): Iterable<BenchResult> {
  const grown = (metric: string, from: number | undefined, to: number) =>
    result(metric, (to - (from ?? 0)) / mib, "MiB", (from ?? 0) / mib);
  for (const [service, { residentBytes, heapBytes }] of after.services) {
    const was: Partial<Holding> = before.services.get(service) ?? {};
    yield grown(`parked_${nameOf(service)}_mb`, was.residentBytes, residentBytes);
    yield grown(`parked_${nameOf(service)}_heap_mb`, was.heapBytes, heapBytes);
  }
  yield grown("broker_memory_mb", before.broker.residentBytes, after.broker.residentBytes);
  yield grown("broker_disk_mb", before.broker.storedBytes, after.broker.storedBytes);
  yield result("broker_messages", after.broker.messages, "", before.broker.messages);
  yield result("broker_consumers", after.broker.consumers, "", before.broker.consumers);
}

async function* woken(
  { world, live }: { world: World; live: LiveRuns },
  ids: readonly string[],
): AsyncIterable<BenchResult> {
  const timesMs: number[] = [];
  for (const runId of ids) {
    const claimed = live.next(runId, "claimed");
    const ended = live.next(runId, "ended");
    const submittedAtMs = performance.now();
    await world.runs.submitOutputs({
      runId,
      outputs: [{ callId: "call_0_0", outcome: { case: "resultJson", value: '"here"' } }],
    });
    await claimed;
    timesMs.push(performance.now() - submittedAtMs);
    await ended;
  }
  yield result("wake_p50_ms", quantileOf(timesMs, 0.5), "ms");
  yield result("wake_p95_ms", quantileOf(timesMs, 0.95), "ms");
  yield result("wakes", timesMs.length, "");
}

/** So many of them, at random, each once. */
function sampleOf(ids: readonly string[], count: number): string[] {
  const rest = [...ids];
  const size = Math.min(count, rest.length);
  return Array.from({ length: size }, () => rest.splice(Math.floor(Math.random() * rest.length), 1)[0] ?? "");
}

function nameOf(service: string): string {
  return service.replaceAll("-", "_");
}

function result(metric: string, value: number, unit: string, baseline: number | null = null): BenchResult {
  return { bench, metric, value: rounded(value), unit, baseline: baseline && rounded(baseline), ratio: null };
}
