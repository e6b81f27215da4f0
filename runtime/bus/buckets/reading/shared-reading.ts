import { callPatience } from "../../link/call-patience.ts";

/**
 * One reading for all callers while another is under way: each gets one that began after it asked, and there are
 * never more than two, however many ask.
 */
export function sharedReading<T>(read: () => Promise<T>): () => Promise<T> {
  let running: Promise<void> | undefined;
  let next: Promise<T> | undefined;

  function begin(): Promise<T> {
    const reading = read();
    const ended = () => {
      if (running === mine) running = undefined;
    };
    const mine = reading.then(ended, ended);
    running = mine;
    return reading;
  }

  return () => {
    if (running === undefined) return begin();
    const sinceMs = performance.now();
    next ??= running.then(() => {
      callPatience.spendIfLong(sinceMs); // the reading before may have waited for the bus
      next = undefined;
      return begin();
    });
    return next;
  };
}
