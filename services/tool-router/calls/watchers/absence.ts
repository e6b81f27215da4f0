import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { Presence } from "./ports.ts";

/** How long a call waits for somebody to watch its tool: one that was there may be coming back. */
export const ABSENCE_GRACE_MS = 2_000;

/** What is answered at once asks nobody. */
const ASK_MS = 250;

export type Absence = ReturnType<typeof createAbsence>;

/** Made once: of calls that come one by one, each would make an error whose stack nobody reads. */
const NOBODY_WAITS = new Error("no call waits for a watcher");

interface Watch {
  readonly followers: Set<{ since: number; readonly onAbsent: () => void }>;
  readonly end: AbortController;
}

/** One question a tool at a time, however many calls wait; none once this router stops: watchers leave with their suite, and come back. */
export function createAbsence(
  presence: Presence,
  clock: Clock,
  { stopping, onFault }: { stopping: AbortSignal; onFault(fault: string): void },
) {
  const watches = new Map<string, Watch>();

  async function ask(tool: string, { followers, end }: Watch): Promise<void> {
    const { signal } = end;
    let absentSince: number | undefined;
    while (!stopping.aborted) {
      await clock.delay(ASK_MS, signal);
      const isWatched = await presence.isWatched(tool, signal);
      absentSince = isWatched ? undefined : (absentSince ?? clock.now());
      if (absentSince === undefined) continue;
      for (const follower of followers) {
        if (clock.now() - Math.max(absentSince, follower.since) < ABSENCE_GRACE_MS) continue;
        follower.since = clock.now();
        follower.onAbsent();
      }
    }
  }

  function open(tool: string): Watch {
    const watch: Watch = { followers: new Set(), end: new AbortController() };
    watches.set(tool, watch);
    ask(tool, watch).catch((error: unknown) => {
      if (watches.get(tool) === watch) watches.delete(tool); // the next call asks anew; these have their timeouts
      if (!watch.end.signal.aborted) onFault(`who watches tool ${tool} cannot be told: ${messageFromUnknown(error)}`);
    });
    return watch;
  }

  return {
    /** Calls back when nobody has watched the tool for the whole grace, and after each further one; gives what ends it. */
    follow(tool: string, onAbsent: () => void): () => void {
      const watch = watches.get(tool) ?? open(tool);
      const follower = { since: clock.now(), onAbsent };
      watch.followers.add(follower);
      return () => {
        watch.followers.delete(follower);
        if (watch.followers.size > 0) return;
        watch.end.abort(NOBODY_WAITS);
        if (watches.get(tool) === watch) watches.delete(tool);
      };
    },
  };
}
