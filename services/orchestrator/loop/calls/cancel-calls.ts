import { RunMode } from "#gen/toolbus/run/v1/run_pb.ts";
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
  if (accepted.options?.mode === RunMode.SINGLE_TURN || state.phase.kind === "ended") return; // nothing is ever dispatched
  const { principal } = accepted;
  const reason = cancel?.reason || "its run was cancelled";
  const calls = openCalls(state).filter((call) => !isFunctionToolCall(state, call));
  await Promise.all(
    calls.map(({ callId }) => router.cancelCall(routerCallId(runId, callId), reason, { signal, principal })),
  );
}
