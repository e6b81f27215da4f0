import type { Clock } from "#runtime/time/clock.ts";
import type { Presence } from "./watching.ts";

/** How long a call waits for somebody to watch its tool: one that was there may be coming back. */
export const ABSENCE_GRACE_MS = 2_000;

/** What is answered at once asks nobody. */
const FIRST_ASK_MS = 250;
const ASK_MS = 250;

export interface Absence {
  /** Resolves when nobody has watched the tool for the whole grace; rejects with the signal's reason. */
  lasts(tool: string, signal: AbortSignal): Promise<void>;
}

interface Watch {
  absentSince: number | undefined;
  waiting: number;
  heard: PromiseWithResolvers<void>;
  end: AbortController;
}

/** One question a tool at a time, however many calls wait for its answer. */
export function createAbsence(presence: Presence, clock: Clock): Absence {
  const watches = new Map<string, Watch>();

  async function follow(tool: string, watch: Watch): Promise<void> {
    const { signal } = watch.end;
    while (!signal.aborted) {
      const isWatched = await presence.isWatched(tool, signal);
      watch.absentSince = isWatched ? undefined : (watch.absentSince ?? clock.now());
      watch.heard.resolve();
      watch.heard = Promise.withResolvers();
      await clock.delay(ASK_MS, signal);
    }
  }

  function join(tool: string): Watch {
    const standing = watches.get(tool);
    if (standing) {
      standing.waiting += 1;
      return standing;
    }
    const fresh = {
      absentSince: undefined,
      waiting: 1,
      heard: Promise.withResolvers<void>(),
      end: new AbortController(),
    };
    watches.set(tool, fresh);
    void follow(tool, fresh).catch((error: unknown) => {
      if (!fresh.end.signal.aborted) fresh.heard.reject(error);
      if (watches.get(tool) === fresh) watches.delete(tool); // the next one asks anew
    });
    return fresh;
  }

  function leave(tool: string, watch: Watch): void {
    watch.waiting -= 1;
    if (watch.waiting > 0) return;
    watch.end.abort();
    if (watches.get(tool) === watch) watches.delete(tool);
  }

  return {
    async lasts(tool, signal) {
      const since = clock.now();
      await clock.delay(FIRST_ASK_MS, signal);
      const watch = join(tool);
      const ended = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      try {
        for (;;) {
          await Promise.race([watch.heard.promise, ended]);
          signal.throwIfAborted();
          const from = watch.absentSince === undefined ? undefined : Math.max(watch.absentSince, since);
          if (from !== undefined && clock.now() - from >= ABSENCE_GRACE_MS) return;
        }
      } finally {
        leave(tool, watch);
      }
    },
  };
}
