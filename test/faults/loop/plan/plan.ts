import { createRandom } from "../../random.ts";
import type { Trial } from "../trial.ts";
import { allPairs, isDisruptive, type Pair } from "./points.ts";

/** What is still to be tried, in an order that follows from the seed. */
export interface Plan {
  /** The next trial of its kind; undefined when there is none any more. */
  next(kind: "disruptive" | "quiet"): Trial | undefined;
  /** One that did not reach its point is tried again later, a few times, with other choices; beside those that are planned. */
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

/** The last letter of a token tells the try. */
const tryLetters = ["a", "b", "c"];
const triesApart = 300_000;

export function createPlan({ seed, points = Number.POSITIVE_INFINITY, pairs = allPairs }: PlanOptions): Plan {
  const random = createRandom(seed);
  const waiting = { disruptive: [] as Trial[], quiet: [] as Trial[] };
  const planned = new Set<Pair>();
  let count = 0;

  function addRound(): void {
    for (const pair of random.shuffled(pairs)) {
      if (count >= points) return;
      planned.add(pair);
      count += 1;
      add({ pair, token: `p${String(count).padStart(5, "0")}a`, seed: seed * 1_000_003 + count });
    }
  }

  function add(trial: Trial): void {
    waiting[isDisruptive(trial.pair) ? "disruptive" : "quiet"].push(trial);
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
    again({ pair, token, seed }) {
      const letter = tryLetters[tryLetters.indexOf(token.slice(-1)) + 1];
      if (letter !== undefined) add({ pair, token: token.slice(0, -1) + letter, seed: seed + triesApart });
    },
  };
}
