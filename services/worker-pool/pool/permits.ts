import { EqualParts } from "#runtime/collections/turns/equal-parts.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { WorkerPoolConfig } from "../config.ts";

export type Line = ReturnType<typeof createLine>;

/** How many wait in line in the whole pool, whatever they wait for, and whether more than one principal has asked for anything in it. */
export function createLine({ waiting, overflow }: WorkerPoolConfig["pool"]) {
  let first = "";
  let isShared = false;
  return {
    waiting: new EqualParts(waiting),
    overflow,
    noteAsker(principal: string): void {
      first ||= principal;
      isShared ||= principal !== "" && principal !== first;
    },
    /** Nothing is kept from a principal that is alone in the pool. */
    isFullFor: (parts: EqualParts, principal: string) => (isShared ? parts.isFullFor(principal) : parts.isFull),
  };
}

export type Permits = ReturnType<typeof createPermits>;

/**
 * A bounded number of places, shared as `EqualParts` says once a second principal has asked the pool for anything: one that becomes free
 * is for the principal that has the fewest, in the order of asking. Nobody is one of them.
 */
export function createPermits(limit: number, what: string, line: Line) {
  const waiting = new Map<() => void, string>();
  const places = new EqualParts(limit);
  const isFullFor = (principal: string) => line.isFullFor(places, principal);

  function take(principal: string): () => void {
    places.add(principal, 1);
    let isBack = false;
    return () => {
      if (isBack) return;
      isBack = true;
      places.add(principal, -1);
      admit();
    };
  }

  function admit(): void {
    for (;;) {
      const able = [...waiting].filter(([, principal]) => !isFullFor(principal));
      const [next] = able.sort(([, a], [, b]) => places.heldBy(a) - places.heldBy(b))[0] ?? [];
      if (next === undefined) return;
      waiting.delete(next);
      next();
    }
  }

  return {
    get hasWaiting() {
      return waiting.size > 0;
    },
    get isFull() {
      return places.isFull;
    },
    get isFree() {
      return places.total === 0;
    },
    isFullFor,
    /** Resolves with the function that gives the place back. Rejects with the signal's reason, or `resource_exhausted`. */
    async acquire(signal: AbortSignal, principal = ""): Promise<() => void> {
      signal.throwIfAborted();
      line.noteAsker(principal);
      if (!isFullFor(principal)) return take(principal);
      if (line.overflow === "refuse" || line.isFullFor(line.waiting, principal)) {
        const all = places.isFull ? `all ${limit} ${what}` : `all ${what} but those for others`;
        const words = line.overflow === "refuse" ? "" : `, and ${line.waiting.total} calls wait already`;
        refuse("resource_exhausted", `${all} are taken${words}`, { reason: "WORKER_POOL_FULL" });
      }
      const turn = Promise.withResolvers<() => void>();
      const next = () => turn.resolve(take(principal));
      line.waiting.add(principal, 1);
      waiting.set(next, principal);
      try {
        return await unlessAborted(turn.promise, signal);
      } catch (error) {
        if (!waiting.delete(next)) (await turn.promise)();
        throw error;
      } finally {
        line.waiting.add(principal, -1);
      }
    },
  };
}
