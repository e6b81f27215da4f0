// All attacks on one suite, in the long form or the short one.

import { setTimeout as pause } from "node:timers/promises";
import type { Attack } from "./attack.ts";
import { openAttacker } from "./attacker/attacker.ts";
import { openNeighbour } from "./neighbour/neighbour.ts";
import { type Course, excessOf, type Paid, type Played, paidBy, playAttack } from "./play.ts";
import { openAttackedSuite } from "./suite/world.ts";

export interface CampaignOptions {
  readonly attacks: readonly Attack[];
  /** Each attack once and small, and the neighbour measured over all of them; else each for as long as that takes to measure. */
  readonly isShort: boolean;
  readonly seed: number;
  readonly onVerdict: (verdict: Verdict) => void;
}

/** What came of one attack; in the short form what the neighbour paid is judged over all of them. */
export interface Verdict extends Omit<Played, "before" | "under"> {
  readonly paid: Paid;
}

/** The verdicts; the last one, on the neighbour over all attacks, in the short form alone. */
export async function runCampaign({ attacks, isShort, seed, onVerdict }: CampaignOptions): Promise<Verdict[]> {
  await using suite = await openAttackedSuite();
  await using neighbour = await openNeighbour(suite.ground.url, suite.ground.keys.alice);
  await using attacker = openAttacker(suite.ground);
  const stage = { suite, attacker, neighbour };
  if (!isShort) await pause(2_000); // what starts late has started, and code is warm
  const course: Course = { isShort, seed, leastMs: isShort ? 0 : 10_000, quietMs: isShort ? 0 : 10_000 };
  const verdicts: Verdict[] = [];
  const all: Played[] = [];
  for (const attack of attacks) {
    let played = await playAttack(stage, attack, course);
    // The machine may have had a bad moment: what cannot be seen again was no cost of the attack.
    if (!isShort && played.reached.length === 0 && excessOf(paidBy(played)).length > 0)
      played = await playAttack(stage, attack, { ...course, seed: seed + 1_000 }); // what it made is there already
    all.push(played);
    tell(played, isShort ? [] : excessOf(paidBy(played)));
  }
  if (isShort) {
    const under = all.flatMap((played) => played.under);
    const rest = { attack: "all of them, seen by another principal", requirement: "SEC-5", rounds: 1, tookMs: 0 };
    // Where other tests run beside, so few calls tell of no ratio: what is held is that each was answered.
    const whole = { ...rest, tries: under.length, reached: [], before: [], under };
    tell(whole, excessOf(paidBy(whole)));
  }
  return verdicts;

  function tell({ before, under, ...played }: Played, excess: readonly string[]): void {
    const verdict = { ...played, reached: [...played.reached, ...excess], paid: paidBy({ before, under }) };
    verdicts.push(verdict);
    onVerdict(verdict);
  }
}
