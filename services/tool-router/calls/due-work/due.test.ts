import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { success } from "../answers/answer.ts";
import { type CallRecordInit, callRecord } from "../records/record/call-record.ts";
import { decideDueWork, heldCheckAt, nextCheckAt } from "./due.ts";

const { EXTERNAL, SPACE } = ExecutionType;
const now = 1_000_000;
const dayMs = 24 * 60 * 60_000;
const record = (more: CallRecordInit) => callRecord({ callId: "c", createTime: timestampFromMs(now), ...more });

const waitsUntil = timestampFromMs(now + 30_000);
const expiresAt = timestampFromMs(now + 90_000);
const waiting = record({ state: State.WAITING, executionType: EXTERNAL, waitExpireTime: waitsUntil });
const pending = record({ state: State.PENDING, executionType: EXTERNAL });
const asked = record({ state: State.WAITING, executionType: SPACE, waitExpireTime: waitsUntil });
const started = record({ state: State.STARTED, executionType: EXTERNAL });

test("a call for services is looked at soon after it was created, since its router may have died before it offered it", () => {
  expect(decideDueWork(waiting, undefined, now)).toEqual({ kind: "check", at: now + 1_000 });
  expect(decideDueWork(pending, undefined, now)).toEqual({ kind: "check", at: now + 1_000 });
  expect(nextCheckAt(waiting, now)).toBe(now + 31_000);
});

test("dispatcher-4 a call that a watcher has and has not taken is looked at each second, and at its end", () => {
  expect(heldCheckAt(waiting, now)).toBe(now + 1_000);
  expect(heldCheckAt(waiting, now + 30_500)).toBe(now + 31_000);
  expect(heldCheckAt(pending, now)).toBe(now + 1_000);
});

test("TOOL-5 a wait is looked at after its end, an open call at its expiry, one without either a day before the store forgets it", () => {
  expect(decideDueWork(asked, undefined, now)).toEqual({ kind: "check", at: now + 31_000 });
  const unanswered = { ...asked, state: State.PENDING };
  expect(decideDueWork({ ...unanswered, expireTime: expiresAt }, asked, now)).toEqual({
    kind: "check",
    at: now + 90_000,
  });
  expect(decideDueWork(unanswered, asked, now)).toEqual({ kind: "check", at: now + 29 * dayMs });
  expect(nextCheckAt(pending, now)).toBe(now + 29 * dayMs);
});

test("TOOL-6 a call for services whose wait is over is looked at soon: it may never have been offered, or its watcher be lost", () => {
  const taken = { taken: true, deliveryId: "w.1" };
  expect(decideDueWork(pending, waiting, now)).toEqual({ kind: "check", at: now + 1_000 });
  expect(decideDueWork({ ...pending, ...taken }, { ...waiting, ...taken }, now)).toEqual({
    kind: "check",
    at: now + 1_000,
  });
});

test("LOOP-14 a taken call is looked at again and again, more seldom the older it is", () => {
  const taken = { ...waiting, taken: true, deliveryId: "w.1", waitExpireTime: timestampFromMs(now + 3_600_000) };
  expect(decideDueWork(taken, waiting, now)).toEqual({ kind: "check", at: now + 1_000 });
  expect(nextCheckAt(taken, now)).toBe(now + 2_000);
  expect(nextCheckAt(taken, now + 40_000)).toBe(now + 50_000);
  expect(nextCheckAt(taken, now + 3_000_000)).toBe(now + 3_060_000);
});

test("a resolved call is told once more; one that people or the inbox must hear of is looked at, at once", () => {
  const resolved = { ...waiting, state: State.RESOLVED, result: success(1) };
  expect(decideDueWork(resolved, waiting, now)).toEqual({ kind: "notify" });
  expect(decideDueWork({ ...resolved, spaceId: "room" }, waiting, now)).toEqual({ kind: "check", at: now });
  expect(decideDueWork({ ...resolved, resolvedLate: true }, pending, now)).toEqual({ kind: "check", at: now });
});

test("TOOL-10 a call that the router runs itself is looked at when it has ended, where a space shows it", () => {
  const shown = { ...started, spaceId: "room" };
  expect(decideDueWork(shown, undefined, now)).toEqual({ kind: "none" });
  expect(decideDueWork({ ...shown, inputEpoch: 1 }, shown, now)).toEqual({ kind: "none" });
  const resolved = { ...shown, state: State.RESOLVED, result: success(1) };
  expect(decideDueWork(resolved, shown, now)).toEqual({ kind: "check", at: now });
  expect(decideDueWork({ ...resolved, execution: undefined }, resolved, now)).toEqual({ kind: "none" });
});

test("calls that the router runs itself, and tombstones, leave nothing to do", () => {
  expect(decideDueWork(started, undefined, now)).toEqual({ kind: "none" });
  expect(decideDueWork({ ...started, state: State.RESOLVED }, started, now)).toEqual({ kind: "none" });
  expect(decideDueWork(record({ state: State.CANCELED }), undefined, now)).toEqual({ kind: "none" });
});
