import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallRecord } from "./call-record.ts";

export function isOpen({ state }: CallRecord): boolean {
  return state === State.WAITING || state === State.PENDING;
}

/** Whether services watch for it; the others are answered by people. */
export function isExternal({ executionType }: CallRecord): boolean {
  return executionType === ExecutionType.EXTERNAL;
}

export function hasExpired({ expireTime: expiresAt }: CallRecord, now: number): boolean {
  return expiresAt !== undefined && timestampMs(expiresAt) <= now;
}

/** C1 of requests/cancellation.ts: a call that was canceled before it began. */
export function isTombstone({ state, tool }: CallRecord): boolean {
  return state === State.CANCELED && tool === "";
}

/** C5 there: whether the call of a principal was canceled by it. */
export function isCanceledFor(record: CallRecord, principal: string): boolean {
  return isTombstone(record) && cancelersOf(record).some((by) => by === "" || by === principal);
}

/** Whether one of the suite's own services canceled it; then it holds for everybody's call. */
export function isCanceledForAll(record: CallRecord): boolean {
  return isTombstone(record) && cancelersOf(record).includes("");
}

/** On whose behalf it was; empty for one of the suite's own services. */
export function cancelersOf({ canceledBy, principal }: CallRecord): readonly string[] {
  return canceledBy.length > 0 ? canceledBy : [principal];
}
