import { setImmediate as nextTurn } from "node:timers/promises";
import { delay } from "../../time/delay.ts";
import { RoundRobinQueue } from "./round-robin-queue.ts";

/** To read as many values takes 10 ms, where they are made for that: what has fewer is read at once. */
export const HEAVY_VALUES = 5_000;

/** In which a small request of somebody else comes to its end. */
const MOST_REST_MS = 250;
const LEAST_REST_MS = 5;

const turns = new RoundRobinQueue(1);

/** Whose turn it is. */
export interface Taker {
  /** Who has turns of his own. */
  readonly sender: string;
  /** Aborts when he does not want it any more; what waits holds what it is about. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Resolves when a piece of heavy work may begin: one at a time, each followed by a rest as long as it took, within bounds. What one
 * sender brings at once holds up what others do by one piece of it, and not by all of them; senders have their turns in a circle.
 */
export function ownTurn({ sender, signal }: Taker): Promise<void> {
  return turns.begin(sender, untilRested, signal);
}

/** The piece runs in the turn of the event loop in which this begins. */
async function untilRested(): Promise<void> {
  const begunAt = performance.now();
  await nextTurn();
  const tookMs = performance.now() - begunAt;
  if (tookMs > LEAST_REST_MS) await delay(Math.min(tookMs, MOST_REST_MS));
}
