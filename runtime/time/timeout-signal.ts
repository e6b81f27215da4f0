import { startTimer } from "./timer.ts";

/** Disposing it stops its timer: it then never aborts. */
export type TimeoutSignal = AbortSignal & Disposable;

/**
 * A signal that aborts with a `TimeoutError` after that time, however long it is: `AbortSignal.timeout` fires at once from
 * 2^31 ms on and throws from 2^32 on. Like it, it keeps no process alive. Whoever is done before a long time is over
 * disposes it (`using`), for the timer holds the signal until then.
 */
export function timeoutSignal(ms: number): TimeoutSignal {
  const controller = new AbortController();
  const onTime = () => controller.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
  const stop = startTimer(ms, onTime, { isBackground: true });
  return Object.assign(controller.signal, { [Symbol.dispose]: stop });
}
