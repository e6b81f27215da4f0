/**
 * LOOP-12: the deadline of a run that waits for its turn. The rules (worker-…) are those of `worker.ts`.
 *
 * A deadline of its agent needs no timer here: the runs before it have it as well, and began earlier.
 */

import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import type { Decide, RunJournal } from "../../log/journal.ts";
import { wakeAt } from "../wakes/wake.ts";
import type { WorkerOptions } from "./worker-options.ts";

/** worker-9. */
export async function keepQueuedDeadline(options: WorkerOptions, journal: RunJournal): Promise<void> {
  if (journal.state === undefined) return;
  const { runId, accepted, acceptedAtMs } = journal.state;
  const deadlineMs = msFromDuration(accepted.options?.limits?.timeout) ?? 0;
  if (deadlineMs === 0) return;
  const untilMs = acceptedAtMs + deadlineMs;
  if (options.clock.now() < untilMs) return wakeAt(options, { sessionId: accepted.sessionId, runId }, untilMs);
  await journal.append(endInQueue);
}

/** Whoever claims it at the same time ends it for the same reason. */
const endInQueue: Decide = (state) =>
  state?.phase.kind === "queued" && state.cancel === undefined
    ? { case: "ended", value: { state: RunState.INCOMPLETE, endReason: RunEndReason.DEADLINE } }
    : undefined;
