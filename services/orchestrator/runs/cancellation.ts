/**
 * LOOP-15: a run that is cancelled.
 *
 *   cancelRequested ──▶ its open calls are canceled ──▶ ended
 *
 * cancel-1  From `cancelRequested` on, whoever works on the run appends nothing but what its model used and its end (claim-1), and lets go of its model
 *     and its calls; it is told, and finds out by its next append in any case.
 * cancel-2  Before the end, the router is told of each call that has no result, begun or not: it ends the ones that run, wherever
 *     they run, and refuses the others for good. So a process that was frozen with a call in its hand cannot make it later.
 *     Drafts of calls that are shown are told their end likewise (shown-2).
 * cancel-3  A router that is away, or spaces that are, keep the end from being written here. The request is in the log and the session is woken:
 *     whoever claims the run next cancels its calls and ends it.
 * cancel-4  A process that was telling what the model says is left a moment to end the run itself: the log gets what it told last.
 */

import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Asker } from "#runtime/failure/session-owner.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import { until } from "#runtime/time/until.ts";
import type { RunJournal } from "../log/journal.ts";
import { type FoldedRun, openCallCount } from "../log/state/fold.ts";
import { cancelOpenCalls } from "../loop/calls/cancel-calls.ts";
import { endOfCanceled } from "../loop/limits/stop-condition.ts";
import { endShownCalls, openShownCalls, type ToolMessageParts } from "../loop/streaming/shown-calls.ts";
import type { CallCanceler } from "../loop/tools/tool-router.ts";
import { announcer, type ExistingRunOptions, notFound, openExisting } from "./existing-run.ts";

export interface CancelOptions extends ExistingRunOptions, ToolMessageParts {
  readonly router: CallCanceler;
  /** Makes the process that works on the run look at its log. */
  readonly notify: (instance: string, sessionId: string) => void;
}

export async function cancelRun(
  options: CancelOptions,
  runId: string,
  by: { asker?: Asker; principal: string; reason: string; signal: AbortSignal },
): Promise<FoldedRun> {
  const journal = await openExisting(options, runId, by.asker);
  const { phase, accepted } = journal.state ?? notFound(runId);
  if (phase.kind === "ended" && phase.ended.state !== RunState.CANCELED) {
    refuse("failed_precondition", `run ${runId} has ended`, { reason: "RUN_ENDED" });
  }
  const { principal, reason } = by;
  const requested = await journal.append(
    (state) =>
      state?.phase.kind === "ended" || state?.cancel !== undefined
        ? undefined
        : { case: "cancelRequested", value: { principal, reason } },
    { announce: announcer(options, journal) },
  );
  const holder = journal.state?.claim;
  if (holder !== undefined && requested !== undefined) options.notify(holder.instance, accepted.sessionId); // cancel-1
  const state = journal.state ?? notFound(runId);
  const areCallsCanceled = await cancelOpenCalls(options.router, state, by.signal).then(
    () => true,
    () => false, // cancel-3
  );
  if (!areCallsCanceled) return state;
  const result = errorResult(reason || "its run was cancelled");
  const drafts = openShownCalls(state);
  const areEnded = await endShownCalls(options, state, { drafts, result, signal: by.signal, patienceMs: 0 });
  if (!areEnded) return state; // cancel-3
  if (state.phase.kind === "working" && openCallCount(state) === 0) await endOfHolder(journal); // cancel-4
  await journal.append((current) =>
    current === undefined || current.phase.kind === "ended"
      ? undefined
      : { case: "ended", value: endOfCanceled(current) },
  );
  return journal.state ?? notFound(runId);
}

const holderMs = 300;

/** cancel-4 */
async function endOfHolder(journal: RunJournal): Promise<void> {
  const hasEnded = async () => (await journal.refresh())?.phase.kind === "ended";
  await until(hasEnded, { timeoutMs: holderMs, intervalMs: 15 }).catch(() => {}); // it is ended without the last words
}
