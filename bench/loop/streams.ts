/*
 * Runs that all speak at fifty tokens a second, each with a watcher. Every token tells when it was due, so that a watcher knows
 * how late it is.
 *
 * `delta_cpu_us`: CPU time of orchestrator, nats-server and client together, by token, of 300 such runs; `delta_cpu_of_50_us`: of
 * 50, whose tokens share fewer messages.
 * `streams_held`: how many such runs the orchestrator and the nats-server hold on one core, which both are bound to; held means
 * that 98 of 100 tokens are there on time: within a quarter of a second.
 */

import { execFile } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { type BenchResult, rounded } from "../measuring/result.ts";
import { cpuMicrosecondsOf } from "./figures/cpu.ts";
import { dueTimesOf, quiet } from "./plan.ts";
import { startRun, type World } from "./world.ts";

const bench = "loop";
const deltaMs = 20;
const spokenMs = 8_000;
const settlingMs = 500;
const windowMs = 3_500;
const onTimeMs = 250;
const shareOnTime = 0.98;
const trials = [100, 200, 300, 400, 600, 800];

interface Trial {
  /** How many were due in the time that was looked at, and how many of them came. */
  readonly due: number;
  readonly heard: number;
  readonly onTime: number;
  readonly cpuMicroseconds: number;
}

export async function* measureStreams(world: World): AsyncIterable<BenchResult> {
  for (const [metric, count] of [
    ["delta_cpu_us", 300],
    ["delta_cpu_of_50_us", 50],
  ] as const) {
    const { heard, cpuMicroseconds } = await speak(world, count);
    yield result(metric, cpuMicroseconds / heard, "us");
  }
  const pids = [world.server.pid, ...world.orchestrators.map(({ pid }) => pid)];
  await Promise.all(pids.map((pid) => bindToCore(pid, "0")));
  let held = 0;
  for (const count of trials) {
    const trial = await speak(world, count);
    if (trial.onTime < trial.due * shareOnTime) break;
    held = count;
  }
  yield result("streams_held", held, "runs");
}

/**
 * Lets so many runs speak at once, and looks at the tokens that are due in a window of time after all of them have begun. It
 * listens a quarter of a second longer than the window, as the last tokens of it are on time until then.
 */
async function speak(world: World, count: number): Promise<Trial> {
  const plan = { ...quiet, turns: 0, deltas: (spokenMs + count * 20) / deltaMs, deltaMs };
  const latenesses: number[] = [];
  let window = { fromMs: Number.POSITIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };
  let speaking = 0;
  const allSpeak = Promise.withResolvers<void>();

  async function watch(): Promise<void> {
    const { id } = await startRun(world, { ...plan, id: crypto.randomUUID() });
    let hasSpoken = false;
    for await (const { update } of world.runs.watchRun({ runId: id, fromSequence: 0n, includeDeltas: true })) {
      if (update.case !== "delta" || update.value.delta.case !== "text") continue;
      if (!hasSpoken) {
        hasSpoken = true;
        speaking += 1;
        if (speaking === count) allSpeak.resolve();
      }
      const now = Date.now();
      for (const dueAt of dueTimesOf(update.value.delta.value)) {
        if (dueAt >= window.fromMs && dueAt < window.toMs) latenesses.push(now - dueAt);
      }
    }
  }

  // more than can be held are cut off: what their watchers did not hear is missing in the count
  const watches = Array.from({ length: count }, () => watch().catch(() => {}));
  await Promise.race([allSpeak.promise, Promise.all(watches)]);
  await wait(settlingMs);
  const fromMs = Date.now();
  window = { fromMs, toMs: fromMs + windowMs };
  const before = cpuOfAll(world);
  await wait(windowMs);
  const cpuMicroseconds = cpuOfAll(world) - before;
  await wait(onTimeMs);
  const heard = latenesses.length;
  const onTime = latenesses.filter((ms) => ms <= onTimeMs).length;
  await Promise.all(watches);
  return { due: Math.round((count * windowMs) / deltaMs), heard, onTime, cpuMicroseconds };
}

function cpuOfAll(world: World): number {
  const pids = [process.pid, world.server.pid, ...world.orchestrators.map(({ pid }) => pid)];
  return pids.reduce((sum, pid) => sum + cpuMicrosecondsOf(pid), 0);
}

async function bindToCore(pid: number, core: string): Promise<void> {
  await promisify(execFile)("taskset", ["-a", "-p", "-c", core, String(pid)]);
}

function result(metric: string, value: number, unit: string): BenchResult {
  return { bench, metric, value: rounded(value), unit, baseline: null, ratio: null };
}
