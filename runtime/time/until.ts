import { comesWithin } from "./comes-within.ts";
import { delay } from "./delay.ts";
import { unlessAborted } from "./unless-aborted.ts";

export interface UntilOptions {
  timeoutMs?: number;
  /** The shortest time between two questions. */
  intervalMs?: number;
  /** What is waited for, as it should stand in the error: "the stream to be empty". */
  what?: string;
  signal?: AbortSignal;
}

type Falsy = false | 0 | "" | 0n | null | undefined;

/** A wait is that much longer than it need be, and what it waits for has the machine to itself meanwhile. */
const LATER_BY = 1 / 10;
const LONGEST_INTERVAL_MS = 100;

/**
 * Asks again and again, and less often the longer it waits, until the condition gives something truthy, which it returns.
 * A condition that throws ends the waiting with its error, as does an aborted signal with its reason; a condition that
 * hangs is given up at the timeout.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  options: UntilOptions = {},
): Promise<Exclude<T, Falsy>> {
  const { timeoutMs = 45_000, intervalMs = 5, what = "a condition", signal } = options;
  const startedAt = performance.now();
  const elapsedMs = () => performance.now() - startedAt;
  for (;;) {
    signal?.throwIfAborted();
    const value = await withinTime(condition, timeoutMs - elapsedMs(), signal);
    if (value) return value as Exclude<T, Falsy>;
    if (elapsedMs() >= timeoutMs)
      throw new Error(`waited ${Math.round(elapsedMs())} ms for ${what}, which did not come about`);
    const nextMs = Math.max(intervalMs, Math.min(elapsedMs() * LATER_BY, LONGEST_INTERVAL_MS));
    await delay(Math.min(nextMs, timeoutMs - elapsedMs()), signal);
  }
}

/** The condition's value, or undefined when it takes longer than is left. */
async function withinTime<T>(
  condition: () => T | Promise<T>,
  leftMs: number,
  signal?: AbortSignal,
): Promise<T | undefined> {
  const value = condition();
  if (!(value instanceof Promise)) return value;
  return (await comesWithin(leftMs, unlessAborted(value, signal))) ? value : undefined;
}
