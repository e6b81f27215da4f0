/** A session in which there is nothing to do. The rules (W…) are those of `worker.ts`. */

import { Failure } from "#runtime/failure/failure.ts";
import { isRunnable } from "../../log/state/fold.ts";
import type { ActiveRun } from "../queue.ts";
import { type Wake, wakeAt } from "../wakes/wake.ts";
import type { Verdict } from "../wakes/wake-outcome.ts";
import type { WorkerOptions } from "./worker-options.ts";

/** W6. */
export async function rest(
  options: WorkerOptions,
  active: ActiveRun | undefined,
  { message }: Wake,
): Promise<Verdict | undefined> {
  if (active !== undefined) {
    await setDeadline(options, active); // W7
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

/** W8. */
export async function restParked(options: WorkerOptions, active: ActiveRun): Promise<Verdict | undefined> {
  const { state } = active.journal;
  if (state?.phase.kind !== "parked" || isRunnable(state, options.clock.now())) return undefined;
  await setDeadline(options, { ...active, state }); // W7
  return { kind: "done" };
}

/** W7. */
async function setDeadline(options: WorkerOptions, { state: { runId, accepted, phase } }: ActiveRun): Promise<void> {
  if (phase.kind === "parked" && Number.isFinite(phase.untilMs)) {
    await wakeAt(options, { sessionId: accepted.sessionId, runId }, phase.untilMs);
  }
}
