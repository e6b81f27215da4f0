import { startTimer } from "#runtime/time/timer.ts";

/** Aborts after that time, at once when there is none left. */
export function openDeadline(afterMs: number): Disposable & { signal: AbortSignal } {
  const controller = new AbortController();
  const abort = () => controller.abort(new Error("the run's deadline has passed"));
  return { signal: controller.signal, [Symbol.dispose]: startTimer(Math.max(0, afterMs), abort) };
}
