/**
 * Runs that this process has just accepted. When the wake-up of such a run comes to the same process, its worker waits for the
 * creator and takes over the creator's journal; it does not read the log.
 *
 * accepted-here-1  Only stored state is passed on: a log of one event and its entry in its session's queue. If the run
 *     changed meanwhile, the fence of the next append shows it.
 * accepted-here-2  A run is passed on once. A wake-up that comes to another process finds everything in the log. Runs that nobody
 *     takes are forgotten after 2 s: each holds all that its client gave, which may be 1 MiB.
 */

import { startTimer } from "#runtime/time/timer.ts";
import type { FreshRun } from "../queue.ts";

export type AcceptedHere = ReturnType<typeof createAcceptedHere>;

/** accepted-here-2. */
const keptMs = 2_000;

export function createAcceptedHere() {
  const kept = new Map<string, Promise<FreshRun | undefined>>();
  return {
    /** Call it before the run's wake-up is sent. Disposing without `resolve` passes nothing on. */
    open(runId: string): Disposable & { resolve(run: FreshRun): void } {
      const { promise, resolve } = Promise.withResolvers<FreshRun | undefined>();
      kept.set(runId, promise);
      const close = () => {
        resolve(undefined);
        startTimer(keptMs, () => kept.delete(runId), { isBackground: true });
      };
      return { resolve, [Symbol.dispose]: close };
    },
    /** The run once its creator is done; undefined if it was not accepted here. */
    async take(runId: string): Promise<FreshRun | undefined> {
      const run = kept.get(runId);
      kept.delete(runId);
      return run;
    },
  };
}
