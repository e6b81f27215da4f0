import { delay } from "../time/delay.ts";

/** To read this much may take 10 ms, when it is made for that: what is shorter begins at once. */
export const HEAVY_BYTES = 32 * 1024;

/** In which a small request of somebody else comes to its end. */
const MOST_REST_MS = 250;
const LEAST_REST_MS = 5;

interface Piece {
  readonly tookMs: number;
  readonly endedAt: number;
}

let last: Promise<void> = Promise.resolve();
let before: Promise<Piece> = Promise.resolve({ tookMs: 0, endedAt: 0 });

/**
 * Resolves when a piece of heavy work may begin: one at a time, each followed by a rest as long as it took, within bounds. What many
 * send at once holds up others by one piece of it, and not by all of them.
 */
export function ownTurn(): Promise<void> {
  last = last.then(begin);
  return last;
}

async function begin(): Promise<void> {
  const { tookMs, endedAt } = await before;
  const restMs = endedAt + Math.min(tookMs, MOST_REST_MS) - performance.now();
  if (restMs > LEAST_REST_MS) await delay(restMs);
  before = endOfTurn();
}

/** The piece runs in the turn of the event loop in which it is told to. */
function endOfTurn(): Promise<Piece> {
  const begunAt = performance.now();
  return new Promise((resolve) => {
    setImmediate(() => {
      const endedAt = performance.now();
      resolve({ tookMs: endedAt - begunAt, endedAt });
    });
  });
}
