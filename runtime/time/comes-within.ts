import { startTimer } from "./timer.ts";

/** Whether the promise resolves in that time; rejects as it does. Whoever waits no longer leaves it running. */
export function comesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  return new Promise<boolean>((resolve, reject) => {
    const stop = startTimer(ms, () => resolve(false));
    promise.then(stop, stop);
    promise.then(() => resolve(true), reject);
  });
}
