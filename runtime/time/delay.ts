import { startTimer } from "./timer.ts";

/**
 * Waits, however long; rejects with the signal's reason as soon as the signal aborts, also when it had aborted before.
 */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      stop();
      reject(signal?.reason);
    };
    const stop = startTimer(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
