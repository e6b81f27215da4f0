/*
 * A call that outlives the instance of its provider.
 *
 * TAKEOVER-1  A provider says how long a call may be without an instance, before it asks anybody for the call's answer (`held`). For so
 *             long after the loss of the instance the next one is asked for, however often nobody serves the provider meanwhile: an
 *             instance may start more slowly than its loss is noticed. Without such a word it is asked for once.
 * TAKEOVER-2  Only an instance that has taken the call over, and said so, can be lost with it; then the time begins anew. Whatever
 *             else an instance says ends the call.
 * TAKEOVER-3  The call's time and its cancellation end the asking.
 */

import type { CallHeld } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { startedNothing } from "#runtime/failure/not-started.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import type { Answer } from "../answers/answer.ts";

/** What a call's provider has said of its holding. */
export interface Holding {
  /** In milliseconds. */
  readonly takeoverGraceMs: number;
  onHeld(held: CallHeld): void;
  /** An attempt in which nothing was said of it yet; what an earlier one said still counts. */
  begin(): void;
  /** Whether the latest attempt found an instance that holds the call. */
  isHeld(): boolean;
}

export function createHolding(): Holding {
  let takeoverGraceMs = 0;
  let isHeld = false;
  return {
    get takeoverGraceMs() {
      return takeoverGraceMs;
    },
    onHeld(held) {
      takeoverGraceMs = msFromDuration(held.takeoverGrace) ?? 0;
      isHeld = true;
    },
    begin() {
      isHeld = false;
    },
    isHeld: () => isHeld,
  };
}

const WAITS = { initialMs: 50, maxMs: 500 };

/** Asks for a call whose instance was lost, until one has it and ends it. `resume` asks once. */
export async function takeOver(resume: () => Promise<Answer>, holding: Holding, signal: AbortSignal): Promise<Answer> {
  for (;;) {
    try {
      return await retryWhile(isUnserved, resume, { ...WAITS, patienceMs: holding.takeoverGraceMs, signal });
    } catch (error) {
      if (!(isLoss(error) && holding.isHeld() && holding.takeoverGraceMs > 0)) throw error; // TAKEOVER-2
    }
  }
}

/** Whether an instance of the provider was lost with what it had started. */
export function isLoss(error: unknown): boolean {
  return error instanceof Failure && error.code === "unavailable" && !startedNothing(error);
}

function isUnserved(error: unknown): boolean {
  return error instanceof Failure && error.code === "unavailable" && startedNothing(error);
}
