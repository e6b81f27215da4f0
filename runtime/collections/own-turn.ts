import { delay } from "../time/delay.ts";

/** To read this much may take 10 ms, when it is made for that: what is shorter begins at once. */
export const HEAVY_BYTES = 32 * 1024;

/** In which a small request of somebody else comes to its end. */
const MOST_REST_MS = 250;
const LEAST_REST_MS = 5;

let last: Promise<void> = Promise.resolve();

/**
 * Resolves when a piece of heavy work may begin: one at a time, each followed by a rest as long as it took, within bounds. What many
 * send at once holds up others by one piece of it, and not by all of them.
 */
export function ownTurn(): Promise<void> {
  last = last.then(rest);
  return last;
}

/** The piece before it runs in the turn in which this begins. */
async function rest(): Promise<void> {
  const begunAt = performance.now();
  await new Promise((resolve) => setImmediate(resolve));
  const tookMs = performance.now() - begunAt;
  if (tookMs > LEAST_REST_MS) await delay(Math.min(tookMs, MOST_REST_MS));
}
