import { delay } from "./delay.ts";

/** The time as the domain sees it; tests give a clock that they turn by hand. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Like `delay` of `delay.ts`: rejects with the signal's reason when it aborts. */
  delay(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = { now: () => Date.now(), delay };
