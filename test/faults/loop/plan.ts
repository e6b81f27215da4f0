import { createRandom } from "../random.ts";
import { allPairs, isDisruptive, type Pair } from "./points.ts";
import type { Trial } from "./trial.ts";

/** What is still to be tried, in an order that follows from the seed. */
export interface Plan {
  /** The next trial of its kind; undefined when there is none any more. */
  next(kind: "disruptive" | "quiet"): Trial | undefined;
  /** One that did not reach its point is tried again later, a few times. */
  again(trial: Trial): void;
  /** The pairs that are to be hit. */
  readonly pairs: readonly Pair[];
}

export interface PlanOptions {
  readonly seed: number;
  /** How many trials; without end unless told. */
  readonly points?: number | undefined;
  readonly pairs?: readonly Pair[] | undefined;
}

const triesOfPair = 3;

export function createPlan({ seed, points = Number.POSITIVE_INFINITY, pairs = allPairs }: PlanOptions): Plan {
  const random = createRandom(seed);
  const waiting = { disruptive: [] as Trial[], quiet: [] as Trial[] };
  const tries = new Map<Pair, number>();
  const planned = new Set<Pair>();
  let count = 0;

  function addRound(): void {
    for (const pair of random.shuffled(pairs)) {
      if (count >= points) return;
      planned.add(pair);
      add(pair);
    }
  }

  function add(pair: Pair): void {
    count += 1;
    const token = `p${String(count).padStart(5, "0")}`;
    const kind = isDisruptive(pair) ? "disruptive" : "quiet";
    waiting[kind].push({ pair, token, seed: seed * 1_000_003 + count });
  }

  addRound();
  return {
    get pairs() {
      return [...planned];
    },
    next(kind) {
      for (let round = 0; waiting[kind].length === 0 && count < points && round < 2; round += 1) addRound();
      return waiting[kind].shift();
    },
    again({ pair }) {
      const tried = (tries.get(pair) ?? 1) + 1;
      tries.set(pair, tried);
      if (tried <= triesOfPair) add(pair);
    },
  };
}
