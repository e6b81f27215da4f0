import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { type FailureCode, type ReasonName, refuse } from "#runtime/failure/failure.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import { hasExpired, isOpen } from "../records/record/states.ts";

/** Refuses a call that takes no results, and says why. */
export function refuseUnlessOpen(record: CallRecord, now: number): void {
  const { callId, state } = record;
  if (state === State.RESOLVED) refuseCall(callId, "CALL_ALREADY_RESOLVED", "is already resolved");
  if (state === State.CANCELED) refuseCall(callId, "CALL_ALREADY_RESOLVED", "is already resolved: it was canceled");
  if (state === State.EXPIRED || hasExpired(record, now)) refuseCall(callId, "CALL_EXPIRED", "has expired");
  if (!isOpen(record)) refuseCall(callId, "CALL_NOT_AWAITED", "is not answered from outside");
}

export function refuseCall(
  callId: string,
  reason: ReasonName,
  why: string,
  code: FailureCode = "failed_precondition",
): never {
  return refuse(code, `call ${callId} ${why}`, { reason, metadata: { call_id: callId } });
}

export function refuseUnknown(callId: string, runId?: string): never {
  const fromRun = runId === undefined ? "" : ` of run ${runId}`;
  return refuse("not_found", `there is no call ${callId}${fromRun}`, {
    reason: "CALL_NOT_FOUND",
    metadata: { call_id: callId },
  });
}
