/*
 * What a turn costs beside the model and the tool, and what a tool call adds. The model tells when it had answered and when it
 * was asked again: between the two stand the commit, the calls with their results, and the next request. In runs of one call
 * a turn that is a turn and a call; in runs of two, one after the other, a turn and two calls.
 */

import { type BenchResult, rounded } from "../measuring/result.ts";
import { quantileOf } from "./figures/quantile.ts";
import { type Plan, quiet } from "./plan.ts";
import { followToEnd, startRun, type World } from "./world.ts";

const bench = "loop";
const rounds = 5;
const turnsOfRound = 200;
const warmUpRuns = 100;
const turnsOfWarmUp = 30;
const inOrder = { options: { parallelToolCalls: false } };

/** Between each answer of the model and the next request to it, in milliseconds. */
async function gapsOfRun(world: World, plan: Partial<Plan>, more: object = {}): Promise<number[]> {
  const id = crypto.randomUUID();
  const run = await startRun(world, { ...quiet, ...plan, id }, more);
  await followToEnd(world, run.id, false);
  const samples = (await world.orchestrators[0]?.samples(id)) ?? [];
  return samples.slice(1).map(({ askedAtMs }, index) => askedAtMs - (samples[index]?.answeredAtMs ?? Number.NaN));
}

/** A service is measured as it is after its first minute: what V8 compiles at first costs several times what it costs later. */
async function warmUp(world: World): Promise<void> {
  for (let run = 0; run < warmUpRuns; run += 1) {
    await gapsOfRun(world, { turns: turnsOfWarmUp, calls: 1 + (run % 2) }, inOrder);
  }
}

export async function* measureTurns(world: World): AsyncIterable<BenchResult> {
  await warmUp(world);
  const one: number[] = [];
  const two: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    one.push(...(await gapsOfRun(world, { turns: turnsOfRound, calls: 1 }, inOrder)));
    two.push(...(await gapsOfRun(world, { turns: turnsOfRound, calls: 2 }, inOrder)));
  }
  const callMs = quantileOf(two, 0.5) - quantileOf(one, 0.5);
  const turns = one.map((gapMs) => gapMs - callMs);
  yield plainResult("turn_p50_ms", quantileOf(turns, 0.5));
  yield plainResult("turn_p99_ms", quantileOf(turns, 0.99));
  yield plainResult("tool_call_p50_ms", callMs);
  yield plainResult("run_p50_ms", quantileOf(await timesOfRuns(world), 0.5));
}

const runsOfOneAnswer = 300;

/** From the request for a run to its end, of runs whose model answers at once: what it takes to accept, start and end one. */
async function timesOfRuns(world: World): Promise<number[]> {
  const times: number[] = [];
  for (let count = 0; count < runsOfOneAnswer; count += 1) {
    const startedAtMs = performance.now();
    const run = await startRun(world, { ...quiet, turns: 0, id: crypto.randomUUID() });
    await followToEnd(world, run.id, false);
    times.push(performance.now() - startedAtMs);
  }
  return times;
}

const longRuns = 3;
const longTurns = 1_000;
const atEnds = 25;

/** Runs of a thousand turns: their last ones compared with their first ones. */
export async function measureLength(world: World): Promise<BenchResult> {
  const firsts: number[] = [];
  const lasts: number[] = [];
  for (let run = 0; run < longRuns; run += 1) {
    const gaps = await gapsOfRun(world, { turns: longTurns });
    firsts.push(...gaps.slice(0, atEnds));
    lasts.push(...gaps.slice(-atEnds));
  }
  const first = quantileOf(firsts, 0.5);
  const last = quantileOf(lasts, 0.5);
  return {
    bench,
    metric: "turn_1000_ms",
    value: rounded(last),
    unit: "ms",
    baseline: rounded(first),
    ratio: rounded(last / first),
  };
}

function plainResult(metric: string, ms: number): BenchResult {
  return { bench, metric, value: rounded(ms), unit: "ms", baseline: null, ratio: null };
}
