import { Failure } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";

export interface Patience {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long it is waited for; 0 to ask once. */
  readonly patienceMs: number;
}

/** Asks another service again while it is away: throws what it failed with last, or at once what will not pass. */
export function retryWhileUnavailable<T>(patience: Patience, ask: () => Promise<T>): Promise<T> {
  return retryWhile(isUnavailable, ask, { initialMs: 50, maxMs: 1_000, ...patience });
}

const codesOfAbsence: ReadonlySet<string> = new Set(["unavailable", "deadline_exceeded", "aborted"]);

/** Whether asking again may help. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof Failure && codesOfAbsence.has(error.code);
}

/** Whether a run that met this error is put back, to be taken up again. */
export function isTransient(error: unknown): boolean {
  return error instanceof Failure && (error.code === "unavailable" || error.code === "resource_exhausted");
}
