/*
 * Runs that speak, each with a watcher (figures/speaking.ts).
 *
 * `delta_cpu_us`: CPU time of orchestrator, nats-server and client together, by token, of 300 such runs; `delta_cpu_of_50_us`: of
 * 50, whose tokens share fewer messages.
 * `streams_held`: how many such runs the orchestrator and the nats-server hold on one core, which both are bound to.
 */

import { type BenchResult, rounded } from "../measuring/result.ts";
import { bindToCore, mostHeld, type Speaking, speak } from "./figures/speaking.ts";
import { startRun, type World } from "./world.ts";

const bench = "loop";

export async function* measureStreams(world: World): AsyncIterable<BenchResult> {
  const pids = [world.server.pid, ...world.orchestrators.map(({ pid }) => pid)];
  const speaking: Speaking = {
    pids: [process.pid, ...pids],
    async listen(plan, onTokens) {
      const { id } = await startRun(world, plan);
      for await (const { update } of world.runs.watchRun({ runId: id, fromSequence: 0n, includeDeltas: true })) {
        if (update.case === "delta" && update.value.delta.case === "text") onTokens(update.value.delta.value);
      }
    },
  };
  for (const [metric, count] of [
    ["delta_cpu_us", 300],
    ["delta_cpu_of_50_us", 50],
  ] as const) {
    const { heard, cpuMicroseconds } = await speak(speaking, count);
    yield result(metric, cpuMicroseconds / heard, "us");
  }
  await Promise.all(pids.map((pid) => bindToCore(pid, "0")));
  yield result("streams_held", await mostHeld(speaking), "runs");
}

function result(metric: string, value: number, unit: string): BenchResult {
  return { bench, metric, value: rounded(value), unit, baseline: null, ratio: null };
}
