import { delay } from "./delay.ts";

/** Whether the promise resolves in that time; rejects as it does. Whoever waits no longer leaves it running. */
export async function comesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const over = new AbortController();
  const timeUp = delay(ms, over.signal).then(
    () => false,
    () => true, // cut short, since the promise came
  );
  try {
    return await Promise.race([promise.then(() => true), timeUp]);
  } finally {
    over.abort();
  }
}
