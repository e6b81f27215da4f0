import { refuse } from "#runtime/failure/failure.ts";
import type { PoolLimits } from "../config.ts";

/** How many wait in line in the whole pool, whatever they wait for. */
export interface Line {
  waiting: number;
  readonly limit: number;
  readonly overflow: PoolLimits["overflow"];
}

export type Permits = ReturnType<typeof createPermits>;

/** A bounded number of places, given out in the order of asking. */
export function createPermits(limit: number, what: string, line: Line) {
  const waiting: (() => void)[] = [];
  let taken = 0;

  function place(): () => void {
    let isBack = false;
    return () => {
      if (isBack) return;
      isBack = true;
      const next = waiting.shift();
      if (next) next();
      else taken -= 1;
    };
  }

  function refuseWaiting(): void {
    const words = line.overflow === "refuse" ? "" : `, and ${line.waiting} calls wait already`;
    refuse("resource_exhausted", `all ${limit} ${what} are taken${words}`, { reason: "WORKER_POOL_FULL" });
  }

  return {
    get hasWaiting() {
      return waiting.length > 0;
    },
    get isFull() {
      return taken >= limit;
    },
    get isFree() {
      return taken === 0;
    },
    /** Resolves with the function that gives the place back. Rejects with the signal's reason, or `resource_exhausted`. */
    async acquire(signal: AbortSignal): Promise<() => void> {
      signal.throwIfAborted();
      if (taken < limit) {
        taken += 1;
        return place();
      }
      if (line.overflow === "refuse" || line.waiting >= line.limit) refuseWaiting();
      return new Promise((resolve, reject) => {
        const leave = () => {
          line.waiting -= 1;
          signal.removeEventListener("abort", onAbort);
        };
        const next = () => {
          leave();
          resolve(place());
        };
        const onAbort = () => {
          waiting.splice(waiting.indexOf(next), 1);
          leave();
          reject(signal.reason);
        };
        line.waiting += 1;
        waiting.push(next);
        signal.addEventListener("abort", onAbort, { once: true });
      });
    },
  };
}
