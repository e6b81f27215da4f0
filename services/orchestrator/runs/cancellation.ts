/**
 * LOOP-15: how a run is canceled.
 *
 *   cancelRequested ──▶ its open calls are canceled ──▶ ended
 *
 * cancel-1  After `cancelRequested`, the holder of the run appends only what its model used and the run's end (claim-1), and stops its model
 *     and its calls. It is notified; without that, its next append shows it.
 * cancel-2  Before the end, the router cancels each call without a result, begun or not: it ends those that run, wherever they run, and
 *     refuses the others for good. So a process that was frozen cannot make such a call later. Drafts of shown calls get their
 *     end, too (shown-2).
 * cancel-3  While the router or spaces are unavailable, this process does not write the end. The request is in the log and the session is
 *     woken: the next claim cancels the calls and ends the run.
 * cancel-4  The holder has a moment to end the run itself: then the log gets the last text that watchers saw.
 */

import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { until } from "#runtime/time/until.ts";
import type { RunJournal } from "../log/journal.ts";
import { type FoldedRun, openCallCount } from "../log/state/fold.ts";
import { cancelOpenCalls } from "../loop/calls/cancel-calls.ts";
import { endOfCanceled } from "../loop/limits/stop-condition.ts";
import { endShownCalls, openShownCalls, type ToolMessageParts } from "../loop/streaming/shown-calls.ts";
import type { CallCanceler } from "../loop/tools/tool-router.ts";
import { announcer, type ExistingRunOptions, openExisting } from "./existing-run.ts";

export interface CancelOptions extends ExistingRunOptions, ToolMessageParts {
  readonly router: CallCanceler;
  /** Makes the process that works on the run read its log. */
  readonly notify: (instance: string, sessionId: string) => void;
}

export async function cancelRun(
  options: CancelOptions,
  runId: string,
  by: { caller: Caller; principal: string; reason: string; signal: AbortSignal },
): Promise<FoldedRun> {
  const journal = await openExisting(options, runId, by.caller);
  const { phase, accepted } = journal.state;
  if (phase.kind === "ended" && phase.ended.state !== RunState.CANCELED)
    refuse("failed_precondition", `run ${runId} has ended`, { reason: "RUN_ENDED" });
  const { principal, reason } = by;
  const requested = await journal.append(
    (state) =>
      state?.phase.kind === "ended" || state?.cancel !== undefined
        ? undefined
        : { case: "cancelRequested", value: { principal, reason } },
    { announce: announcer(options, journal) },
  );
  const holder = journal.state.claim;
  if (holder !== undefined && requested !== undefined) options.notify(holder.instance, accepted.sessionId); // cancel-1
  const { state } = journal;
  const areCallsCanceled = await cancelOpenCalls(options.router, state, by.signal).then(
    () => true,
    () => false, // cancel-3
  );
  if (!areCallsCanceled) return state;
  const result = errorResult(reason || "its run was canceled");
  const drafts = openShownCalls(state);
  const areEnded = await endShownCalls(options, state, { drafts, result, signal: by.signal, patienceMs: 0 });
  if (!areEnded) return state; // cancel-3
  if (state.phase.kind === "working" && openCallCount(state) === 0) await endOfHolder(journal); // cancel-4
  await journal.append((current) =>
    current === undefined || current.phase.kind === "ended"
      ? undefined
      : { case: "ended", value: endOfCanceled(current) },
  );
  return journal.state;
}

const holderMs = 300;

/** cancel-4 */
async function endOfHolder(journal: RunJournal): Promise<void> {
  const hasEnded = async () => (await journal.refresh())?.phase.kind === "ended";
  await until(hasEnded, { timeoutMs: holderMs, intervalMs: 15 }).catch(() => {}); // it is ended without the last words
}
