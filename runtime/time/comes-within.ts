import { startTimer } from "./timer.ts";

/** Whether the promise resolves in that time; rejects as it does. Whoever waits no longer leaves it running. */
export async function comesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const timeUp = Promise.withResolvers<boolean>();
  const stop = startTimer(ms, () => timeUp.resolve(false));
  try {
    return await Promise.race([promise.then(() => true), timeUp.promise]);
  } finally {
    stop();
  }
}
