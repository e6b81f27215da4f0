import { expect, test } from "vitest";
import type { Trial } from "../trial.ts";
import { createPlan, type Plan, type PlanOptions } from "./plan.ts";
import { allPairs, nameOf } from "./points.ts";

const kinds = ["disruptive", "quiet"] as const;

/** All that is planned, taken in an order that is the machine's; every third trial misses its point. */
function taken(plan: Plan, order: readonly number[], misses = false): Trial[] {
  const trials: Trial[] = [];
  for (let turn = 0; ; turn += 1) {
    const kind = kinds[order[turn % order.length] ?? 0] ?? "quiet";
    const trial = plan.next(kind) ?? plan.next(kind === "quiet" ? "disruptive" : "quiet");
    if (trial === undefined) return trials;
    trials.push(trial);
    if (misses && turn % 3 === 0) plan.again(trial);
  }
}

const words = (trials: readonly Trial[]) =>
  trials.map(({ pair, token, seed }) => `${token} ${nameOf(pair)} ${seed}`).sort();
const planOf = (options: PlanOptions) => words(taken(createPlan(options), [0, 1]));

test("LOOP-13 the same seed plans the same trials, whoever is quicker, and whatever is tried again", () => {
  const planned = planOf({ seed: 4, points: 1_000 });
  expect(words(taken(createPlan({ seed: 4, points: 1_000 }), [1, 1, 1, 0]))).toEqual(planned);
  const withMisses = taken(createPlan({ seed: 4, points: 1_000 }), [0, 0, 1], true);
  expect(words(withMisses.filter(({ token }) => token.endsWith("a")))).toEqual(planned);
  expect(planOf({ seed: 5, points: 1_000 })).not.toEqual(planned);
});

test("LOOP-13 a plan has each pair as often as any other, give or take one", () => {
  const counts = Map.groupBy(taken(createPlan({ seed: 1, points: 1_000 }), [0, 1]), ({ pair }) => pair);
  expect(counts.size).toBe(allPairs.length);
  const fewest = Math.floor(1_000 / allPairs.length);
  expect(new Set([...counts.values()].map((trials) => trials.length))).toEqual(new Set([fewest, fewest + 1]));
});

test("LOOP-13 what misses its point is tried three times, each with choices of its own", () => {
  const plan = createPlan({ seed: 1, points: 1 });
  const tries: Trial[] = [];
  for (const kind of kinds) {
    for (let trial = plan.next(kind); trial !== undefined; trial = plan.next(kind)) {
      tries.push(trial);
      plan.again(trial);
    }
  }
  expect(tries.map(({ token }) => token)).toEqual(["p00001a", "p00001b", "p00001c"]);
  expect(new Set(tries.map(({ seed }) => seed)).size).toBe(3);
});
