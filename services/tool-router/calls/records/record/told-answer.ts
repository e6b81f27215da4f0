import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Answer, failure, success } from "../../answers/answer.ts";
import type { CallRecord } from "./call-record.ts";

/** What a caller is told of a call whose answer comes later, to the inbox. */
export function pending(callId: string): Answer {
  return success({ status: "pending", pendingToolCallId: callId });
}

export function timedOut(timeoutMs: number): Answer {
  return failure(`Tool timed out after ${timeoutMs}ms`, "DEADLINE_EXCEEDED");
}

/**
 * What a run is told of a call that it asks for again after a crash: what was told the first time. What came after its time is in the
 * inbox, and told there alone (TOOL-9). Others ask again for the result, and so does a run that had put its call down.
 */
export function toldAnswer(record: CallRecord | undefined): Answer | undefined {
  if (record === undefined) return undefined;
  const { callId, runId, createTime, updateTime, waitExpireTime, result, resolvedLate } = record;
  if (!resolvedLate || runId === "") return result;
  if (waitExpireTime === undefined) return pending(callId);
  const [from = 0, until = 0, answeredAt = 0] = [createTime, waitExpireTime, updateTime].map(
    (at) => at && timestampMs(at),
  );
  return answeredAt < until ? result : timedOut(until - from);
}
