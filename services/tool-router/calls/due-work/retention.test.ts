import { afterAll, beforeAll, expect, test } from "vitest";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { filledPart, makeRoom } from "#runtime/bus/buckets/room.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { callPlace, openCallStore } from "../../subscriptions/calls/store.ts";
import { type CallRecordInit, callRecord } from "../records/record/call-record.ts";
import { createWaiters } from "../records/waiters.ts";
import { KEPT_MS, mayLeave } from "./retention.ts";

const kib = 1_024;
let bus: TestBus;
beforeAll(async () => {
  bus = await openTestBus();
  const { config } = await bus.manager.streams.info("KV_toolbus_calls");
  await bus.manager.streams.update("KV_toolbus_calls", { ...config, max_bytes: 512 * kib });
});
afterAll(() => bus[Symbol.asyncDispose]());

const openStore = () => openCallStore(bus, { waiters: createWaiters() });
const signal = new AbortController().signal;

/** As if so much time had passed. */
function sweepAfter(ms: number): Promise<number> {
  const clock = { ...systemClock, now: () => Date.now() + ms };
  return makeRoom(bus, { place: callPlace, keptMs: KEPT_MS, mayGo: mayLeave, clock }, signal);
}

function recordOf(callId: string, more: CallRecordInit = {}) {
  const facts = { callId, state: State.RESOLVED, tool: "t", argumentsJson: JSON.stringify("x".repeat(kib)) };
  return callRecord({ ...facts, ...more });
}

test("TOOL-4 when room gets short, the calls that ended longest ago leave; open ones and young ones never do", async () => {
  using store = await openStore();
  await store.create(recordOf("open", { state: State.PENDING }));
  await store.create(recordOf("started", { state: State.STARTED }));
  await store.create(recordOf("undelivered", { resolvedLate: true, undelivered: true }));
  await store.create(recordOf("few"));
  expect(await sweepAfter(2 * KEPT_MS), "while there is room").toBe(0);

  const fill = async () => {
    for (let n = 0; ; n += 1) await store.create(recordOf(`call-${n}`));
  };
  await expect(fill()).rejects.toMatchObject({
    code: "resource_exhausted",
    reason: "STORE_FULL",
    message: expect.stringContaining("the store is full: KV_toolbus_calls"),
  });
  expect(await filledPart(bus, callPlace)).toBeGreaterThan(0.95);
  expect(await sweepAfter(0), "those that ended within the hour").toBe(0);

  const removed = await sweepAfter(2 * KEPT_MS);
  expect(removed).toBeGreaterThan(100);
  expect(await filledPart(bus, callPlace)).toBeLessThan(0.75);
  expect(await store.read("open")).toMatchObject({ state: State.PENDING });
  expect(await store.read("started")).toMatchObject({ state: State.STARTED });
  expect(await store.read("undelivered"), "its inbox waits for it").toMatchObject({ undelivered: true });
  expect(await store.read("few")).toBeUndefined();
  expect(await store.read("call-0")).toBeUndefined();
  expect(await store.create(recordOf("next"))).toBe(true);
  expect(await store.create(recordOf("call-0", { state: State.STARTED })), "its id is free again").toBe(true);
  expect(await store.create(recordOf("call-0"))).toBe(false);
});
