import { type FunctionCall, RunMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { routerCallId } from "../../log/state/call-ids.ts";
import { type FoldedRun, openCalls } from "../../log/state/fold.ts";
import { isFunctionToolCall } from "../../log/state/view.ts";
import type { CallCanceler } from "../tools/tool-router.ts";

/**
 * Cancels at the router all calls of a run that have no result, begun or not: it ends those that run, and refuses the others for
 * good. Throws what the router fails with.
 */
export async function cancelOpenCalls(router: CallCanceler, state: FoldedRun, signal: AbortSignal): Promise<void> {
  const { runId, accepted, cancel } = state;
  const { principal } = accepted;
  const reason = cancel === undefined ? "its run has failed" : cancel.reason || "its run was canceled";
  await Promise.all(
    callsToCancel(state).map(({ callId }) =>
      router.cancelToolCall({ callId: routerCallId(runId, callId), reason }, { signal, principal }),
    ),
  );
}

/** The calls without a result that the router may have begun, or may be asked for yet. */
export function callsToCancel(state: FoldedRun): FunctionCall[] {
  const isNeverDispatched = state.accepted.options?.mode === RunMode.SINGLE_TURN || state.phase.kind === "ended";
  return isNeverDispatched ? [] : openCalls(state).filter((call) => !isFunctionToolCall(state, call));
}
