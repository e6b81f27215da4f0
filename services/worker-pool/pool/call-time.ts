import { Failure } from "#runtime/failure/failure.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { startTimer } from "#runtime/time/timer.ts";

/** The time of one call: it stands still while its worker is installed and started. */
export type CallTime = ReturnType<typeof startCallTime>;

/** Its signal aborts when the time is over, or when the caller gives up. */
export function startCallTime(tool: string, timeoutMs: number, caller: AbortSignal) {
  const ending = openEnding(caller);
  let hasBegun = false;
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

  function timeUp(): Failure {
    const words = `${tool} timed out after ${Math.round(timeoutMs)}ms${hasBegun ? "" : ", while it waited for its place"}`;
    return new Failure("deadline_exceeded", words, { reason: hasBegun ? "DEADLINE_EXCEEDED" : "CALL_NOT_STARTED" });
  }

  /** From here on nobody knows what was done when the time ends. */
  function begin(): void {
    hasBegun = true;
  }

  /** To be called when the call is over. */
  function end(): void {
    pause();
    ending[Symbol.dispose]();
  }

  resume();
  return { signal: ending.signal, pause, resume, begin, end };
}
