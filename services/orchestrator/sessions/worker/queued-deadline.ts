/**
 * LOOP-12: the deadline of a run that waits for its turn. The rules (worker-…) are those of `worker.ts`.
 *
 * A deadline of its agent needs no timer here: the runs before it have it as well, and began earlier.
 */

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { openJournal } from "../../log/journal.ts";
import { wakeAt } from "../wakes/wake.ts";
import type { WorkerOptions } from "./worker-options.ts";

/** worker-9. `accepted` is all that the run's log has. */
export async function keepQueuedDeadline(
  options: WorkerOptions,
  { runId, event, createTime: time }: RunEvent,
): Promise<void> {
  const deadlineMs = event.case === "accepted" ? (msFromDuration(event.value.options?.limits?.timeout) ?? 0) : 0;
  if (event.case !== "accepted" || deadlineMs === 0 || time === undefined) return;
  const untilMs = timestampMs(time) + deadlineMs;
  if (options.clock.now() >= untilMs) return endQueued(options, runId);
  await wakeAt(options, { sessionId: event.value.sessionId, runId }, untilMs);
}

/** Whoever claims it at the same time ends it for the same reason. */
async function endQueued({ log, clock }: WorkerOptions, runId: string): Promise<void> {
  const journal = await openJournal(log, runId, clock);
  await journal.append((state) =>
    state?.phase.kind === "queued" && state.cancel === undefined
      ? { case: "ended", value: { state: RunState.INCOMPLETE, endReason: RunEndReason.DEADLINE } }
      : undefined,
  );
}
