import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallRecord } from "./call-record.ts";

export function isOpen({ state }: Pick<CallRecord, "state">): boolean {
  return state === State.WAITING || state === State.PENDING;
}

/** Whether services watch for it; the others are answered by people. */
export function isExternal({ executionType }: CallRecord): boolean {
  return executionType === ExecutionType.EXTERNAL;
}

/** The store forgets a record 30 days after it was written. An open call expires before that, so that who waits for it is told. */
const LONGEST_OPEN_MS = 29 * 24 * 60 * 60_000;

/** When an open call expires, at the latest; undefined for a record of an unknown age. */
export function expiryMs({ expireTime, createTime }: CallRecord): number | undefined {
  const latest = createTime && timestampMs(createTime) + LONGEST_OPEN_MS;
  if (expireTime === undefined) return latest;
  return Math.min(timestampMs(expireTime), latest ?? Number.POSITIVE_INFINITY);
}

export function hasExpired(record: CallRecord, now: number): boolean {
  const atMs = expiryMs(record);
  return atMs !== undefined && atMs <= now;
}

/** cancellation-1 of requests/cancellation.ts: a call that was canceled before it began. */
export function isTombstone({ state, tool }: Pick<CallRecord, "state" | "tool">): boolean {
  return state === State.CANCELED && tool === "";
}

/** cancellation-5 there: whether the call of a principal was canceled by it; for an empty one, everybody's. */
export function isCanceledFor(record: CallRecord, principal: string): boolean {
  return isTombstone(record) && cancelersOf(record).some((by) => by === "" || by === principal);
}

/** On whose behalf it was; empty for one of the suite's own services. */
export function cancelersOf({ canceledBy, principal }: CallRecord): readonly string[] {
  return canceledBy.length > 0 ? canceledBy : [principal];
}
