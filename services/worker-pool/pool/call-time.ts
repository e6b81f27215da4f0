import { openEnding } from "#runtime/time/ending.ts";
import { startTimer } from "#runtime/time/timer.ts";

/** The time of one call: it stands still while its worker is installed and started. */
export interface CallTime {
  /** Aborts when the time is over, or when the caller gives up. */
  readonly signal: AbortSignal;
  pause(): void;
  resume(): void;
  /** To be called when the call is over. */
  end(): void;
}

export function startCallTime(timeoutMs: number, caller: AbortSignal, timeUp: () => Error): CallTime {
  const ending = openEnding(caller);
  let leftMs = timeoutMs;
  let runsSinceMs: number | undefined;
  let stopTimer: () => void = () => {};

  function pause(): void {
    if (runsSinceMs === undefined) return;
    leftMs -= performance.now() - runsSinceMs;
    runsSinceMs = undefined;
    stopTimer();
  }

  function resume(): void {
    if (runsSinceMs !== undefined) return;
    runsSinceMs = performance.now();
    stopTimer = startTimer(Math.max(0, leftMs), () => ending.end(timeUp()));
  }

  function end(): void {
    pause();
    ending[Symbol.dispose]();
  }

  resume();
  return { signal: ending.signal, pause, resume, end };
}
