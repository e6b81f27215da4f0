/** A session in which there is nothing to do. `worker.ts` has the rules (worker-…). */

import { isRunnable } from "../../../log/state/fold.ts";
import type { ActiveRun } from "../../queue.ts";
import { wakeAt } from "../../wakes/wake.ts";
import type { WakeOutcome } from "../../wakes/wake-outcome.ts";
import type { WorkerOptions } from "../worker-options.ts";
import type { InboxLook } from "./inbox-look.ts";

/** worker-6. */
export async function onIdle(
  options: WorkerOptions & { readonly lookIntoInbox: (sessionId: string) => Promise<InboxLook> },
  active: ActiveRun | undefined,
  sessionId: string,
): Promise<WakeOutcome | undefined> {
  if (active !== undefined) {
    await setDeadline(options, active); // worker-7
    return { kind: "done" };
  }
  if (options.handover.aborted) return { kind: "later", delayMs: 0 };
  const look = await options.lookIntoInbox(sessionId);
  if (look === "started") return undefined;
  return look === "nothing" ? { kind: "done" } : { kind: "later", delayMs: look.againMs };
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
  if (phase.kind === "parked" && Number.isFinite(phase.untilMs))
    await wakeAt(options, { sessionId: accepted.sessionId, runId }, phase.untilMs);
}
