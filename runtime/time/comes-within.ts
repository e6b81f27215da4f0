import type { Clock } from "./clock.ts";
import { openEnding } from "./ending.ts";
import { startTimer } from "./timer.ts";

/** Whether the promise resolves in that time; rejects as it does. Whoever waits no longer leaves it running. */
export function comesWithin(ms: number, promise: PromiseLike<unknown>, clock?: Pick<Clock, "delay">): Promise<boolean> {
  return new Promise<boolean>((resolve, reject) => {
    const late = () => resolve(false);
    const stop = clock === undefined ? startTimer(ms, late) : startDelay(ms, late, clock);
    promise.then(stop, stop);
    promise.then(() => resolve(true), reject);
  });
}

function startDelay(ms: number, onTime: () => void, clock: Pick<Clock, "delay">): () => void {
  const { signal, end } = openEnding();
  clock.delay(ms, signal).then(onTime, () => {}); // it came first
  return () => end();
}
