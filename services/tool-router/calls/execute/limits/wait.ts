import type { Clock } from "#runtime/time/clock.ts";
import { type Ending, openEnding } from "#runtime/time/ending.ts";

/** Made once: nobody reads the stack of an error that each wait would make. */
const OVER = new Error("the wait is over");

/** A wait for whoever answers from outside: it ends with the signal, when its time is over, and when it is disposed. */
export function openWait(clock: Pick<Clock, "delay">, ms: number, signal: AbortSignal): Ending {
  const ending = openEnding(signal);
  const endLate = () => ending.end(new Error("the time is over"));
  void clock.delay(ms, ending.signal).then(endLate, () => {}); // the wait has ended
  return { ...ending, [Symbol.dispose]: () => ending.end(OVER) };
}
