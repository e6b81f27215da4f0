import { callPatience } from "../../link/call-patience.ts";

/**
 * One reading for all who ask before this process hears anything more, or while another one is under way: each gets one that began
 * after whatever it knows of, and there are never more than two, however many ask.
 */
export function sharedReading<T>(read: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> | undefined;
  let next: Promise<T> | undefined;

  async function begin(): Promise<T> {
    const sinceMs = performance.now();
    await running;
    callPatience.spendIfLong(sinceMs); // the reading before may have waited for the bus
    const own = next;
    const begun = () => {
      if (next === own) next = undefined;
    };
    process.nextTick(begun); // the request is on its way, and an answer may be
    const reading = read();
    running = reading.then(begun, begun);
    return reading;
  }

  return () => {
    next ??= begin();
    return next;
  };
}
