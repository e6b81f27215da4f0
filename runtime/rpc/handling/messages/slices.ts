import { setImmediate } from "node:timers/promises";

const SLICE_MS = 5;

/** When the last of all who wait may go on. */
let last: Promise<unknown> = Promise.resolve();

/**
 * For work of many steps that would hold up what else this thread has to do: what it gives is awaited before each step. After 5 ms
 * of them everything else comes first, and of all the work that is done so, one goes on in a turn of the event loop.
 */
export function openSlices(): () => Promise<void> {
  let endsAt = performance.now() + SLICE_MS;
  return async () => {
    if (performance.now() < endsAt) return;
    last = last.then(() => setImmediate());
    await last;
    endsAt = performance.now() + SLICE_MS;
  };
}
