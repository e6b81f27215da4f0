import { type Clock, systemClock } from "../time/clock.ts";
import { openEnding } from "../time/ending.ts";

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

export interface Periodic extends AsyncDisposable {
  /** Ends the pause, or the next one if the work is being done. */
  now(): void;
}

/** Does the work again and again until it is disposed, first after a pause, and each process at moments of its own. */
export function openPeriodic({ everyMs, work, onError, clock = systemClock }: PeriodicOptions): Periodic {
  let isWanted = false;
  let endPause = () => {};
  const background = openBackground(async (signal) => {
    while (!signal.aborted) {
      using pause = openEnding(signal);
      endPause = pause.end;
      if (!isWanted) await clock.delay(everyMs * (0.5 + Math.random()), pause.signal).catch(() => {}); // the loop sees it
      isWanted = false;
      if (signal.aborted) return;
      await work(signal).catch((error: unknown) => {
        if (!signal.aborted) onError(error);
      });
    }
  });
  return {
    now() {
      isWanted = true;
      endPause();
    },
    [Symbol.asyncDispose]: () => background[Symbol.asyncDispose](),
  };
}
