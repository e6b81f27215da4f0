import { setImmediate } from "node:timers/promises";
import { callPatience } from "../../link/call-patience.ts";

/**
 * One reading for all who ask in the same turn of the event loop, or while another one is under way: each gets one that began
 * after it asked, and there are never more than two, however many ask.
 */
export function sharedReading<T>(read: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> | undefined;
  let next: Promise<T> | undefined;

  async function begin(): Promise<T> {
    const sinceMs = performance.now();
    await Promise.allSettled([running, setImmediate()]);
    callPatience.spendIfLong(sinceMs); // the reading before may have waited for the bus
    next = undefined;
    const reading = read();
    running = reading;
    return reading;
  }

  return () => {
    next ??= begin();
    return next;
  };
}
