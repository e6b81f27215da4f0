import { Failure } from "#runtime/failure/failure.ts";
import { createBackoff } from "#runtime/time/backoff.ts";
import type { Clock } from "#runtime/time/clock.ts";

export interface RetryOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long it is waited for; 0 to ask once. */
  readonly patienceMs: number;
}

/** Asks another service again while it is away: throws what it failed with last, or at once what will not pass. */
export async function retryWhileUnavailable<T>(
  { clock, signal, patienceMs }: RetryOptions,
  ask: () => Promise<T>,
): Promise<T> {
  const backoff = createBackoff({ initialMs: 50, maxMs: 1_000 });
  for (const givesUpAtMs = clock.now() + patienceMs; ; await clock.delay(backoff.next(), signal)) {
    try {
      return await ask();
    } catch (error) {
      if (signal.aborted || !isUnavailable(error) || clock.now() >= givesUpAtMs) throw error;
    }
  }
}

const codesOfAbsence: ReadonlySet<string> = new Set(["unavailable", "deadline_exceeded", "aborted"]);

/** Whether asking again may help. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof Failure && codesOfAbsence.has(error.code);
}
