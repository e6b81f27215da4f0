import { type Clock, systemClock } from "../time/clock.ts";

/**
 * Work that goes on by itself until it is disposed: then its signal aborts, and its end is waited for. What goes wrong in it is
 * for the work to tell.
 */
export function openBackground(work: (signal: AbortSignal) => Promise<void>): AsyncDisposable {
  const closing = new AbortController();
  const working = work(closing.signal);
  return {
    async [Symbol.asyncDispose]() {
      closing.abort(new Error("this process stops"));
      await working;
    },
  };
}

export interface PeriodicOptions {
  readonly everyMs: number;
  readonly work: (signal: AbortSignal) => Promise<unknown>;
  /** Told of work that failed; the next time comes all the same. */
  readonly onError: (error: unknown) => void;
  readonly clock?: Clock | undefined;
}

/** Does the work again and again until it is disposed, first after a pause, and each process at moments of its own. */
export function openPeriodic({ everyMs, work, onError, clock = systemClock }: PeriodicOptions): AsyncDisposable {
  return openBackground(async (signal) => {
    while (!signal.aborted) {
      await clock.delay(everyMs * (0.5 + Math.random()), signal).catch(() => {}); // aborted: the loop sees it
      if (signal.aborted) return;
      await work(signal).catch((error: unknown) => {
        if (!signal.aborted) onError(error);
      });
    }
  });
}
