import { refuse } from "#runtime/failure/failure.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { WorkerPoolConfig } from "../config.ts";

/** How many wait in line in the whole pool, whatever they wait for. */
export interface Line {
  waiting: number;
  readonly limit: number;
  readonly overflow: WorkerPoolConfig["pool"]["overflow"];
}

export type Permits = ReturnType<typeof createPermits>;

/** A bounded number of places, given out in the order of asking. */
export function createPermits(limit: number, what: string, line: Line) {
  const waiting = new Set<() => void>();
  let taken = 0;

  function place(): () => void {
    let isBack = false;
    return () => {
      if (isBack) return;
      isBack = true;
      const [next] = waiting;
      if (next === undefined) taken -= 1;
      else {
        waiting.delete(next);
        next();
      }
    };
  }

  return {
    get hasWaiting() {
      return waiting.size > 0;
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
      if (line.overflow === "refuse" || line.waiting >= line.limit) {
        const words = line.overflow === "refuse" ? "" : `, and ${line.waiting} calls wait already`;
        refuse("resource_exhausted", `all ${limit} ${what} are taken${words}`, { reason: "WORKER_POOL_FULL" });
      }
      const turn = Promise.withResolvers<() => void>();
      const next = () => turn.resolve(place());
      line.waiting += 1;
      waiting.add(next);
      try {
        return await unlessAborted(turn.promise, signal);
      } catch (error) {
        if (!waiting.delete(next)) (await turn.promise)();
        throw error;
      } finally {
        line.waiting -= 1;
      }
    },
  };
}
