/*
 * How many steps a second do streamed runs take, from their creation to their end as their clients see it? A step is a turn of
 * the model with text that streams in 25 pieces, and a call of a tool. Beside it, in alternation, as many loops of the AI SDK in
 * memory, in a process of their own, with the same model, a tool that answers the same, and a reader of all that streams.
 *
 * `streamed_steps_per_s`: of 16 runs at once, which is what a machine does: ours take the cores of several processes, those
 * in memory have one process, as a program that embeds them has.
 * `streamed_steps_of_one_per_s`: of one run alone, which is what its client waits for.
 */

import { openPeer } from "../measuring/peer.ts";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import { type Plan, quiet } from "./plan.ts";
import { followToEnd, startRun, type World } from "./world.ts";

const rounds = 5;
const trials = [
  { metric: "streamed_steps_per_s", runs: 16, turns: 50 },
  { metric: "streamed_steps_of_one_per_s", runs: 1, turns: 100 },
];

export async function* measureSteps(world: World): AsyncIterable<BenchResult> {
  await using stack = new AsyncDisposableStack();
  const inMemory = await openPeer<{ ms: number }>(stack, new URL("in-memory.ts", import.meta.url));
  for (const { metric, runs, turns } of trials) {
    const ours: number[] = [];
    const theirs: number[] = [];
    for (let round = 0; round <= rounds; round += 1) {
      const plans = () =>
        Array.from({ length: runs }, () => ({ ...quiet, turns, deltas: 25, id: crypto.randomUUID() }));
      const pair = [await msOfRuns(world, plans()), (await inMemory.ask(plans())).ms] as const;
      if (round === 0) continue; // warms up
      ours.push((runs * turns * 1_000) / pair[0]);
      theirs.push((runs * turns * 1_000) / pair[1]);
    }
    yield comparedResult({ bench: "loop", metric, unit: "1/s" }, ours, theirs);
  }
}

async function msOfRuns(world: World, plans: readonly Plan[]): Promise<number> {
  const startedAtMs = performance.now();
  await Promise.all(
    plans.map(async (plan) => {
      const run = await startRun(world, plan);
      await followToEnd(world, run.id, true);
    }),
  );
  return performance.now() - startedAtMs;
}
