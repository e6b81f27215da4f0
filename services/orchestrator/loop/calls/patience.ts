import type { Failure } from "#runtime/failure/failure.ts";

const patienceMs = 30_000;
/** An attempt that takes longer had reached a router: silence is found sooner. */
const reachedMs = 10_000;
const mostLosses = 5;
/** A router that has had a call for so long is not taken down by it. */
const soundMs = 10 * 60_000;

/** calls-3: for how long the same call is asked for again. */
export function createPatience() {
  let givesUpAtMs: number | undefined;
  let losses = 0;
  return {
    /** Told of each attempt that failed. */
    isOver({ reason }: Failure, { askedAtMs, nowMs }: { askedAtMs: number; nowMs: number }): boolean {
      const tookMs = nowMs - askedAtMs;
      const hadReached = tookMs > reachedMs;
      if (hadReached && reason !== "INSTANCE_STOPPING") losses = tookMs > soundMs ? 1 : losses + 1;
      if (givesUpAtMs === undefined || hadReached) givesUpAtMs = nowMs + patienceMs;
      return losses > mostLosses || nowMs >= givesUpAtMs;
    },
  };
}
