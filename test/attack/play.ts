// One attack after the other, while another principal calls.

import { delay } from "#runtime/time/delay.ts";
import { quantileOf } from "../../bench/loop/figures/quantile.ts";
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
export const WORST_RATIO = 3;

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

/** What the neighbour paid: each call's time and loss. */
export interface Paid {
  readonly calls: number;
  readonly p99BeforeMs: number;
  readonly p99Ms: number;
  readonly lost: readonly string[];
}

export function paidBy({ before, under }: Pick<Played, "before" | "under">): Paid {
  const p99 = (calls: readonly NeighbourCall[]) =>
    quantileOf(
      calls.map(({ tookMs }) => tookMs),
      0.99,
    );
  const lost = under.flatMap((call) => (call.lost === undefined ? [] : [call.lost]));
  return { calls: under.length, p99BeforeMs: p99(before), p99Ms: p99(under), lost };
}

/** That it was too much, in words. */
export function excessOf({ p99BeforeMs, p99Ms, lost }: Paid): string[] {
  const ratio = p99Ms / p99BeforeMs;
  return [
    ...(lost.length > 0 ? [`the neighbour lost ${lost.length} calls: ${[...new Set(lost)].join("; ")}`] : []),
    ...(ratio > WORST_RATIO ? [`the neighbour's p99 is ${ratio.toFixed(1)} times what it was before`] : []),
  ];
}
