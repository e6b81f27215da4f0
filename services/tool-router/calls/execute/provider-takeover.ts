/*
 * A call that outlives the instance of its provider.
 *
 * TAKEOVER-1  A provider says how long a call may be without an instance, before it asks anybody for the call's answer (`held`). For so
 *             long after the loss of the instance the next one is asked for, however often nobody serves the provider meanwhile: an
 *             instance may start more slowly than its loss is noticed. Without such a word it is asked for once.
 * TAKEOVER-2  A call that is asked for again starts nothing twice, so that an instance which is lost before it has said anything is
 *             followed by the next. One that has said that it holds the call can be lost with it, and then the time begins anew. What an
 *             instance answers ends the call.
 * TAKEOVER-3  The call's time and its cancellation end the asking.
 */

import type { CallHeld } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { isFailure } from "#runtime/failure/failure.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import type { Answer } from "../answers/answer.ts";

export type Holding = ReturnType<typeof createHolding>;

/** How long a call may be without an instance, as its provider has said; `graceMs` until it is told another one. */
export function createHolding(graceMs = 0, clock = systemClock) {
  let endsAtMs = 0;
  let isHeld = true;
  return {
    onHeld(held: CallHeld): void {
      graceMs = msFromDuration(held.takeoverGrace) ?? 0;
      isHeld = true;
    },
    /** From now on without an instance. */
    lose(): void {
      if (isHeld) endsAtMs = clock.now() + graceMs;
      isHeld = false;
    },
    /** Whether it is without one for longer than it may be. */
    isOver: () => clock.now() >= endsAtMs,
  };
}

/** Asks for a call whose instance was lost, until one has it and ends it. `resume` asks once. */
export function takeOver(resume: () => Promise<Answer>, holding: Holding, signal: AbortSignal): Promise<Answer> {
  const isAwaited = (error: unknown) => {
    holding.lose();
    return isFailure(error, "unavailable") && !holding.isOver();
  };
  holding.lose();
  return retryWhile(isAwaited, resume, { initialMs: 50, maxMs: 500, signal });
}
