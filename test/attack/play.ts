// One attack after the other, while another principal calls.

import { delay } from "#runtime/time/delay.ts";
import { quantileOf } from "../../bench/loop/figures/quantile.ts";
import { medianOf } from "../../bench/measuring/result.ts";
import type { Attack, Outcome } from "./attack.ts";
import type { Attacker } from "./attacker/attacker.ts";
import type { NeighbourCall } from "./neighbour/calls.ts";
import type { Neighbour } from "./neighbour/neighbour.ts";
import type { AttackedSuite } from "./suite/world.ts";

export interface Played extends Outcome {
  readonly attack: string;
  readonly requirement: string;
  readonly rounds: number;
  /** The neighbour before the attack, and under it. */
  readonly before: readonly NeighbourCall[];
  readonly under: readonly NeighbourCall[];
  readonly tookMs: number;
}

export interface Stage {
  readonly suite: AttackedSuite;
  readonly attacker: Attacker;
  readonly neighbour: Neighbour;
}

export interface Course {
  readonly isShort: boolean;
  readonly seed: number;
  /** An attack is played again until so much time is over, so that the neighbour's share is one of many calls. */
  readonly leastMs: number;
  /** How long the neighbour is left alone before. */
  readonly quietMs: number;
}

/** How many times slower the neighbour's slowest calls may become. */
const WORST_RATIO = 3;

export async function playAttack(stage: Stage, { name, requirement }: Attack, course: Course): Promise<Played> {
  const { suite, attacker, neighbour } = stage;
  await neighbour.take();
  await delay(course.quietMs);
  const before = await neighbour.take();
  const reached = new Set<string>();
  const startedAt = performance.now();
  let [tries, rounds] = [0, 0];
  do {
    const outcome = await attacker.play(name, { isShort: course.isShort, seed: course.seed + rounds });
    rounds += 1;
    tries += outcome.tries;
    for (const line of outcome.reached) reached.add(line);
    if (outcome.fault !== undefined) reached.add(`it could not be played: ${outcome.fault}`);
  } while (performance.now() - startedAt < course.leastMs && reached.size === 0);
  for (const line of suite.takeEnded()) reached.add(line);
  const under = await neighbour.take();
  const tookMs = performance.now() - startedAt;
  return { attack: name, requirement, tries, rounds, before, under, reached: [...reached], tookMs };
}

/** The p99 of so many calls is told by the worst of them: that of most windows, in which a bad moment of the machine has no part. */
const CALLS_OF_WINDOW = 100;

/** What the neighbour paid: the medians of its windows' p99, and what was lost. */
export interface Paid {
  readonly calls: number;
  readonly p99BeforeMs: number;
  readonly p99Ms: number;
  readonly lost: readonly string[];
}

export function paidBy({ before, under }: Pick<Played, "before" | "under">): Paid {
  const p99 = (calls: readonly NeighbourCall[]) => {
    const took = calls.map(({ tookMs }) => tookMs);
    return medianOf([...windowsOf(took)].map((window) => quantileOf(window, 0.99)));
  };
  const lost = under.flatMap((call) => (call.lost === undefined ? [] : [call.lost]));
  return { calls: under.length, p99BeforeMs: p99(before), p99Ms: p99(under), lost };
}

/** What is left behind the last whole one belongs to it. */
function* windowsOf(took: readonly number[]): Generator<number[]> {
  const count = Math.max(1, Math.floor(took.length / CALLS_OF_WINDOW));
  for (let n = 0; n < count; n += 1)
    yield took.slice(n * CALLS_OF_WINDOW, n === count - 1 ? undefined : (n + 1) * CALLS_OF_WINDOW);
}

/** That it was too much, in words. */
export function excessOf({ p99BeforeMs, p99Ms, lost }: Paid): string[] {
  const ratio = p99Ms / p99BeforeMs;
  return [
    ...(lost.length > 0 ? [`the neighbour lost ${lost.length} calls: ${[...new Set(lost)].join("; ")}`] : []),
    ...(ratio > WORST_RATIO ? [`the neighbour's p99 is ${ratio.toFixed(1)} times what it was before`] : []),
  ];
}
