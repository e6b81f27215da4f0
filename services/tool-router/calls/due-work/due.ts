import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import { expiryMs, isExternal, isOpen } from "../records/record/states.ts";

/** The work that is due on a call after its record was written, by any router: nothing, announce the change, or check the call. */
export type DueWork = { kind: "none" } | { kind: "notify" } | { kind: "check"; at: number };

/** The caller's router ends a wait in time. This much later another router does it. */
const BACKSTOP_MS = 1_000;
/** The router that records a call delivers it directly within this time, or never. */
export const FIRST_CHECK_MS = 1_000;
const HELD_CHECK_MS = 1_000;
/** After a delivery that failed; the queue of due work waits longer after each further one. */
const AGAIN_MS = 200;
const SHORTEST_CHECK_MS = 2_000;
const LONGEST_CHECK_MS = 60_000;

/**
 * `before` is the record that the written one replaces. Its due work is replaced too, so the new one covers what may be left:
 * the call may not be enqueued yet, or its watcher may be lost.
 */
export function decideDueWork(record: CallRecord, before: CallRecord | undefined, now: number): DueWork {
  if (isOpen(record)) {
    const isAsBefore = before?.state === record.state && before.taken === record.taken;
    const next = isExternal(record) && !isAsBefore ? now + FIRST_CHECK_MS : dueAt(record);
    return next === undefined ? { kind: "none" } : { kind: "check", at: next };
  }
  if (record.undelivered && before?.undelivered !== true) return { kind: "check", at: now + AGAIN_MS };
  const hasEndedNow = record.state !== State.STARTED && (before?.state === State.STARTED || (before && isOpen(before)));
  if (hasEndedNow && (record.spaceId !== "" || record.resolvedLate)) return { kind: "check", at: now };
  return { kind: hasEndedNow && isOpen(before) ? "notify" : "none" };
}

/** When an open call is checked again after a check that changed nothing; undefined when nothing is due. */
export function nextCheckAt(record: CallRecord, now: number): number | undefined {
  const due = dueAt(record);
  if (!record.taken) return due;
  const ageMs = now - (record.createTime === undefined ? now : timestampMs(record.createTime));
  const soon = now + Math.min(Math.max(ageMs / 4, SHORTEST_CHECK_MS), LONGEST_CHECK_MS);
  return due === undefined ? soon : Math.min(due, soon);
}

/** When a call is checked again that a watcher holds and has not acknowledged: the watcher's router may die. */
export function heldCheckAt(record: CallRecord, now: number): number {
  return Math.min(dueAt(record) ?? Number.POSITIVE_INFINITY, now + HELD_CHECK_MS);
}

/** Whether the caller's time is over and its router has not ended the wait. */
export function isWaitOver({ state, waitExpireTime: waitsUntil }: CallRecord, now: number): boolean {
  return state === State.WAITING && waitsUntil !== undefined && timestampMs(waitsUntil) + BACKSTOP_MS <= now;
}

function dueAt(record: CallRecord): number | undefined {
  const { state, waitExpireTime: waitsUntil } = record;
  const expiresAt = expiryMs(record);
  const ends = [];
  if (state === State.WAITING && waitsUntil !== undefined) ends.push(timestampMs(waitsUntil) + BACKSTOP_MS);
  if (expiresAt !== undefined) ends.push(expiresAt);
  return ends.length === 0 ? undefined : Math.min(...ends);
}
