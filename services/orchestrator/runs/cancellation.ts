/**
 * LOOP-15: a run that is cancelled.
 *
 *   cancelRequested ──▶ its calls are buried ──▶ ended
 *
 * C1  From `cancelRequested` on, whoever works on the run appends nothing but what its model used and its end (claim L1), and lets go of its model
 *     and its calls; it is told, and finds out by its next append in any case.
 * C2  Before the end, the router is told of each call that has no result, begun or not: it ends the ones that run, wherever
 *     they run, and refuses the others for good. So a process that was frozen with a call in its hand cannot make it later.
 *     Drafts of calls that are shown are told their end likewise (showing D2).
 * C3  A router that is away, or spaces that are, keep the end from being written here. The request is in the log and the session is woken:
 *     whoever takes the run up buries its calls and ends it.
 * C4  A process that was telling what the model says is left a moment to end the run itself: the log gets what it told last.
 */

import { RunEndReason, RunMode, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Asker } from "#runtime/failure/session-owner.ts";
import { until } from "#runtime/time/until.ts";
import type { RunJournal } from "../log/journal.ts";
import { routerCallId } from "../log/state/call-id.ts";
import { type FoldedRun, openCallCount, openCalls } from "../log/state/fold.ts";
import { isFunctionToolCall, outputTextFromState } from "../log/state/view.ts";
import { errorResult } from "../loop/calls/refusal.ts";
import { AGENT_SWITCHED } from "../loop/errors/agent-switched.ts";
import { endDrafts, openDrafts, type ShowingParts } from "../loop/streaming/shown-calls.ts";
import { type AnswerOptions, announcer, notFound, openExisting } from "./answer/answers.ts";

/** Where calls are buried: the router. */
export interface CallGrave {
  /** The call is begun by nobody any more, and ended where it runs. */
  cancelCall(callId: string, reason: string, options: { signal: AbortSignal; principal: string }): Promise<void>;
}

export interface CancelOptions extends AnswerOptions, ShowingParts {
  readonly router: CallGrave;
  /** Makes the process that works on the run look at its log. */
  readonly nudge: (instance: string, sessionId: string) => void;
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
  if (holder !== undefined && requested !== undefined) options.nudge(holder.instance, accepted.sessionId); // C1
  const state = journal.state ?? notFound(runId);
  const isBuried = await buryCalls(options.router, state, by.signal).then(
    () => true,
    () => false, // C3
  );
  if (!isBuried) return state;
  const result = errorResult(reason || "its run was cancelled");
  const drafts = openDrafts(state);
  const areEnded = await endDrafts(options, state, { drafts, result, signal: by.signal, patienceMs: 0 });
  if (!areEnded) return state; // C3
  if (state.phase.kind === "working" && openCallCount(state) === 0) await endOfHolder(journal); // C4
  await journal.append((current) =>
    current === undefined || current.phase.kind === "ended"
      ? undefined
      : { case: "ended", value: endOfCancelled(current) },
  );
  return journal.state ?? notFound(runId);
}

const holderMs = 300;

/** C4 */
async function endOfHolder(journal: RunJournal): Promise<void> {
  const hasEnded = async () => (await journal.refresh())?.phase.kind === "ended";
  await until(hasEnded, { timeoutMs: holderMs, intervalMs: 15 }).catch(() => {}); // it is ended without the last words
}

/** C2. Throws what the router fails with. */
export async function buryCalls(router: CallGrave, state: FoldedRun, signal: AbortSignal): Promise<void> {
  const { runId, accepted, cancel } = state;
  if (accepted.options?.mode === RunMode.SINGLE_TURN || state.phase.kind === "ended") return; // nothing is ever dispatched
  const { principal } = accepted;
  const reason = cancel?.reason || "its run was cancelled";
  const calls = openCalls(state).filter((call) => !isFunctionToolCall(state, call));
  await Promise.all(
    calls.map(({ callId }) => router.cancelCall(routerCallId(runId, callId), reason, { signal, principal })),
  );
}

export function endOfCancelled(state: FoldedRun) {
  const reason = state.cancel?.reason === AGENT_SWITCHED ? RunEndReason.AGENT_SWITCHED : RunEndReason.CANCELED;
  return { state: RunState.CANCELED, reason, outputText: outputTextFromState(state) };
}
