/** A session in which there is nothing to do. `worker.ts` has the rules (worker-…). */

import { Failure } from "#runtime/failure/failure.ts";
import { isRunnable } from "../../log/state/fold.ts";
import type { ActiveRun } from "../queue.ts";
import { type Wake, wakeAt } from "../wakes/wake.ts";
import type { WakeOutcome } from "../wakes/wake-outcome.ts";
import type { WorkerOptions } from "./worker-options.ts";

/** worker-6. */
export async function onIdle(
  options: WorkerOptions,
  active: ActiveRun | undefined,
  { message }: Wake,
): Promise<WakeOutcome | undefined> {
  if (active !== undefined) {
    await setDeadline(options, active); // worker-7
    return { kind: "done" };
  }
  const isOfInbox = message.runId === "";
  if (options.handover.aborted) return isOfInbox ? { kind: "later", delayMs: 0 } : { kind: "done" };
  try {
    return (await options.startFromInbox(message.sessionId, options.abandon)) ? undefined : { kind: "done" };
  } catch (error) {
    if (error instanceof Failure && error.code === "not_found") return { kind: "done" }; // a session that is gone
    if (isOfInbox) throw error;
    options.logger.warn({ err: error, sessionId: message.sessionId }, "an inbox could not be looked into");
    return { kind: "done" }; // its own wake-ups stand for what waits in it
  }
}

/** worker-8. */
export async function onParked(options: WorkerOptions, active: ActiveRun): Promise<WakeOutcome | undefined> {
  const { state } = active.journal;
  if (state?.phase.kind !== "parked" || isRunnable(state, options.clock.now())) return undefined;
  await setDeadline(options, { ...active, state }); // worker-7
  return { kind: "done" };
}

/** worker-7. */
async function setDeadline(options: WorkerOptions, { state: { runId, accepted, phase } }: ActiveRun): Promise<void> {
  if (phase.kind === "parked" && Number.isFinite(phase.untilMs)) {
    await wakeAt(options, { sessionId: accepted.sessionId, runId }, phase.untilMs);
  }
}
