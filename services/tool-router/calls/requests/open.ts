import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import { hasExpired, isOpen } from "../records/record/states.ts";

/** Refuses a call that takes no results, and says why. */
export function refuseUnlessOpen(record: CallRecord, now: number): void {
  const { callId, state } = record;
  const metadata = { call_id: callId };
  if (state === State.RESOLVED)
    refuse("failed_precondition", `call ${callId} is already resolved`, { reason: "CALL_ALREADY_RESOLVED", metadata });
  if (state === State.CANCELED) {
    const message = `call ${callId} is already resolved: it was canceled`;
    refuse("failed_precondition", message, { reason: "CALL_ALREADY_RESOLVED", metadata });
  }
  if (state === State.EXPIRED || hasExpired(record, now))
    refuse("failed_precondition", `call ${callId} has expired`, { reason: "CALL_EXPIRED", metadata });
  if (!isOpen(record)) {
    refuse("failed_precondition", `call ${callId} is not answered from outside`, {
      reason: "CALL_NOT_AWAITED",
      metadata,
    });
  }
}

export function refuseUnknown(callId: string, runId?: string): never {
  const fromRun = runId === undefined ? "" : ` of run ${runId}`;
  return refuse("not_found", `there is no call ${callId}${fromRun}`, {
    reason: "CALL_NOT_FOUND",
    metadata: { call_id: callId },
  });
}
