import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { type FailureCode, type ReasonName, refuse } from "#runtime/failure/failure.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import { hasExpired, isOpen } from "../records/record/states.ts";

/** Refuses a call that takes no results, and says why. */
export function refuseUnlessOpen(record: CallRecord, now: number): void {
  const { callId, state } = record;
  if (state === State.RESOLVED || state === State.CANCELED) {
    const why = `is already resolved${state === State.CANCELED ? ": it was canceled" : ""}`;
    refuseCall("failed_precondition", callId, { reason: "CALL_ALREADY_RESOLVED", why });
  }
  if (state === State.EXPIRED || hasExpired(record, now))
    refuseCall("failed_precondition", callId, { reason: "CALL_EXPIRED", why: "has expired" });
  if (!isOpen(record))
    refuseCall("failed_precondition", callId, { reason: "CALL_NOT_AWAITED", why: "is not answered from outside" });
}

interface CallRefusal {
  reason: ReasonName;
  /** Goes on behind the call's name. */
  why: string;
}

export function refuseCall(code: FailureCode, callId: string, { reason, why }: CallRefusal): never {
  return refuse(code, `call ${callId} ${why}`, { reason, metadata: { call_id: callId } });
}

export function refuseUnknown(callId: string, runId?: string): never {
  const fromRun = runId === undefined ? "" : ` of run ${runId}`;
  return refuse("not_found", `there is no call ${callId}${fromRun}`, {
    reason: "CALL_NOT_FOUND",
    metadata: { call_id: callId },
  });
}
