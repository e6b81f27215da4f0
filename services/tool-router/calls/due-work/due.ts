import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { CallRecord } from "../records/call-record.ts";
import { isExternal, isOpen } from "../records/states.ts";

/**
 * What has to be done about a record that was written, by whichever router is there when it is time: nothing, tell that it
 * has changed, or look at it.
 */
export type DueWork = { kind: "none" } | { kind: "notify" } | { kind: "check"; at: number };

/** A caller that waits acts at the end of its time; a little later somebody else does. */
const BACKSTOP_MS = 1_000;
/** Who records a call has handed it to somebody by then, or not at all. */
export const FIRST_CHECK_MS = 1_000;
const HELD_CHECK_MS = 1_000;
const SHORTEST_CHECK_MS = 2_000;
const LONGEST_CHECK_MS = 60_000;

/**
 * `before` is what the written record replaces, with its duty: nobody knows by then whether the call was offered, or whether
 * the watcher that took it still lives.
 */
export function decideDueWork(record: CallRecord, before: CallRecord | undefined, now: number): DueWork {
  if (isOpen(record)) {
    const isAsBefore = before?.state === record.state && before.taken === record.taken;
    const next = isExternal(record) && !isAsBefore ? now + FIRST_CHECK_MS : dueAt(record);
    return next === undefined ? { kind: "none" } : { kind: "check", at: next };
  }
  if (before === undefined || !isOpen(before)) return { kind: "none" };
  return record.spaceId === "" && !record.resolvedLate ? { kind: "notify" } : { kind: "check", at: now };
}

/** When an open call is to be looked at again, after a look that changed nothing; undefined when it can rest. */
export function nextCheckAt(record: CallRecord, now: number): number | undefined {
  const due = dueAt(record);
  if (!record.taken) return due;
  const ageMs = now - (record.createTime === undefined ? now : timestampMs(record.createTime));
  const soon = now + Math.min(Math.max(ageMs / 4, SHORTEST_CHECK_MS), LONGEST_CHECK_MS);
  return due === undefined ? soon : Math.min(due, soon);
}

/** When a call that a watcher has and has not taken is to be looked at again: the router that holds the watcher may die. */
export function heldCheckAt(record: CallRecord, now: number): number {
  return Math.min(dueAt(record) ?? Number.POSITIVE_INFINITY, now + HELD_CHECK_MS);
}

/** Whether its caller's time is over and nobody said so. */
export function isWaitOver({ state, waitExpireTime: waitsUntil }: CallRecord, now: number): boolean {
  return state === State.WAITING && waitsUntil !== undefined && timestampMs(waitsUntil) + BACKSTOP_MS <= now;
}

function dueAt({ state, waitExpireTime: waitsUntil, expireTime: expiresAt }: CallRecord): number | undefined {
  const ends = [];
  if (state === State.WAITING && waitsUntil !== undefined) ends.push(timestampMs(waitsUntil) + BACKSTOP_MS);
  if (expiresAt !== undefined) ends.push(timestampMs(expiresAt));
  return ends.length === 0 ? undefined : Math.min(...ends);
}
