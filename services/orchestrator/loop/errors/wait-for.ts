import type { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { retryWhileUnavailable } from "./retry-while-unavailable.ts";
import { RunFailed } from "./run-failed.ts";

/** The router and spaces may restart without ending a run; one that stays away for longer fails it. */
const patienceMs = 10 * 60_000;

export interface WaitOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How the run ends when the time is over, or at once when waiting would not help. */
  readonly endReason: RunEndReason;
  /** What is unavailable, for the start of the error's message. */
  readonly what: string;
}

/** Asks another service for what a run cannot go on without; waits while it is unavailable. */
export async function waitFor<T>({ clock, signal, endReason, what }: WaitOptions, ask: () => Promise<T>): Promise<T> {
  try {
    return await retryWhileUnavailable({ clock, signal, patienceMs }, ask);
  } catch (error) {
    signal.throwIfAborted();
    throw new RunFailed(endReason, `${what}: ${messageFromUnknown(error)}`, error);
  }
}
