import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { CancelToolCallRequestSchema } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { evictValues, filledPart } from "#runtime/bus/buckets/bucket-eviction.ts";
import { openQuota } from "#runtime/bus/quota/quota.ts";
import { usageByHeader } from "#runtime/bus/quota/usage.ts";
import { REFUSAL_WATERMARK } from "#runtime/bus/quota/watermarks.ts";
import { shrinkStore } from "#runtime/bus/testing/shrink-store.ts";
import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { callerNamed } from "#runtime/rpc/identity.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { callPlace, openCallStore } from "../../subscriptions/calls/store/store.ts";
import { MemoryOffers } from "../../testing/fakes/memory-watchers.ts";
import { entryOf, tool } from "../../testing/fakes/tools.ts";
import { type CallRecordInit, callRecord } from "../records/record/call-record.ts";
import { Records } from "../records/records.ts";
import { createCancellation } from "../requests/cancellation.ts";
import { KEPT_MS, mayLeave } from "./retention.ts";

const kib = 1_024;
let bus: TestBus;
beforeAll(async () => {
  bus = await openTestBus();
  const { config } = await bus.manager.streams.info("KV_toolbus_calls");
  await bus.manager.streams.update("KV_toolbus_calls", { ...config, max_bytes: 512 * kib });
});
afterAll(() => bus[Symbol.asyncDispose]());

const openStore = () => openCallStore(bus, { waiters: new KeyedListeners() });
const signal = new AbortController().signal;

/** As if so much time had passed. */
function sweepAfter(ms: number): Promise<number> {
  const clock = { ...systemClock, now: () => Date.now() + ms };
  return evictValues(bus, { place: callPlace, keptMs: KEPT_MS, mayGo: mayLeave, clock }, signal);
}

function recordOf(callId: string, more: CallRecordInit = {}) {
  const facts = { callId, state: State.RESOLVED, tool: "t", argumentsJson: JSON.stringify("x".repeat(kib)) };
  return callRecord({ ...facts, ...more });
}

describe("SEC-6 a principal whose records take the most", () => {
  const openShares = async (mostBytes: number, onFault = (_: string) => {}) => {
    const bus = await openTestBus();
    await shrinkStore(bus, "KV_toolbus_calls", mostBytes);
    const store = await openCallStore(bus, { waiters: new KeyedListeners() });
    const quota = openQuota(bus, {
      ...usageByHeader(bus, callPlace),
      holds: "calls",
      remedy: "cancel some",
      watermark: REFUSAL_WATERMARK,
      onFault,
    });
    const running = { isHeld: async () => false, follow: () => ({ [Symbol.dispose]() {} }) };
    const tasks = { add: async () => {} };
    const records = new Records({ store, running, tasks, quota, waiters: new KeyedListeners(), executing: new Set() });
    return { bus, store, quota, records };
  };
  const asked = entryOf(tool("asked", { executionType: ExecutionType.SPACE }));
  const factsOf = (principal: string, callId: string) => ({
    ...{ callId, sessionId: principal, runId: "r", agent: "a", tool: "asked", calledAs: "asked", principal },
    argumentsJson: JSON.stringify("x".repeat(8 * kib)),
  });

  test("is refused the next one while room is short, at once; others are not, and what it has on record is joined", async () => {
    await using stack = new AsyncDisposableStack();
    const { bus, store, quota, records } = await openShares(16_384 * kib);
    stack.use(bus);
    stack.use(store);
    stack.use(quota);
    const begin = async (principal: string, callId: string) => {
      const facts = factsOf(principal, callId);
      await records.requireRoom(asked, facts);
      return records.begin(asked, facts, Date.now(), { signal });
    };
    await begin("alice", "hers");
    const fill = async () => {
      for (let n = 0; n < 6_000; n += 1) await begin("mallory", `his-${n}`);
    };
    await expect(fill()).rejects.toMatchObject({
      code: "resource_exhausted",
      reason: "SHARE_EXCEEDED",
      message: expect.stringMatching(/^"mallory" has its share of KV_toolbus_calls: \d+ bytes of calls; cancel some/),
    });
    const filled = await filledPart(bus, callPlace);
    expect(filled, "what may go has gone by then").toBeGreaterThan(REFUSAL_WATERMARK - 0.01);
    expect(filled).toBeLessThan(0.97);
    expect(await begin("alice", "hers-too")).toMatchObject({ kind: "open" });
    expect(await begin("mallory", "his-0"), "it waits for it, as before").toMatchObject({
      kind: "open",
      isMine: false,
    });
  });

  test("keeps no more ids from being called while room is short; what it calls, it cancels all the same", async () => {
    await using stack = new AsyncDisposableStack();
    const { bus, store, quota, records } = await openShares(4_096 * kib);
    stack.use(bus);
    stack.use(store);
    stack.use(quota);
    const running = { isHeld: async () => false, cancel: async (callId: string) => callId === "running" };
    const { cancel } = createCancellation({
      ...{ store, running, quota, audit: () => {}, clock: systemClock, queue: new MemoryOffers() },
      waiters: new KeyedListeners(),
    });
    const cancelAs = (principal: string, callId: string) =>
      cancel(create(CancelToolCallRequestSchema, { callId, reason: "x".repeat(4 * kib) }), callerNamed(principal));
    await records.begin(asked, factsOf("mallory", "his"), Date.now(), { signal });
    const fill = async () => {
      for (let n = 0; n < 2_000; n += 1) await cancelAs("mallory", `never-${n}`);
    };
    await expect(fill()).rejects.toMatchObject({ code: "resource_exhausted", reason: "SHARE_EXCEEDED" });
    expect(await filledPart(bus, callPlace)).toBeLessThan(0.97);
    expect(await records.begin(asked, factsOf("alice", "hers"), Date.now(), { signal })).toMatchObject({
      kind: "open",
    });
    expect(await cancelAs("mallory", "his")).toBe(false);
    expect(await store.read("his")).toMatchObject({ state: State.CANCELED });
    expect(await cancelAs("mallory", "running")).toBe(true);
    expect(await cancelAs("alice", "never")).toBe(false);
  });

  test("loses its own when room is made, and nobody else loses older ones", async () => {
    await using stack = new AsyncDisposableStack();
    const { bus, store, quota } = await openShares(4_096 * kib);
    stack.use(bus);
    stack.use(store);
    stack.use(quota);
    for (let n = 0; n < 20; n += 1) await store.create(recordOf(`hers-${n}`, { principal: "alice" }));
    for (let n = 0; (await filledPart(bus, callPlace)) < 0.9; n += 1)
      await store.create(recordOf(`his-${n}`, { principal: "mallory", argumentsJson: "x".repeat(32 * kib) }));
    const clock = { ...systemClock, now: () => Date.now() + 2 * KEPT_MS };
    const removed = await evictValues(bus, { place: callPlace, keptMs: KEPT_MS, mayGo: mayLeave, clock }, signal);
    expect(removed).toBeGreaterThan(20);
    expect(await store.read("his-0")).toBeUndefined();
    for (let n = 0; n < 20; n += 1) expect(await store.read(`hers-${n}`)).toMatchObject({ principal: "alice" });
  });
});

test("SEC-6 where the calls of who has the most are open, others' ended ones leave before the store is full for all", async () => {
  await using bus = await openTestBus();
  await shrinkStore(bus, "KV_toolbus_calls", 2_048 * kib);
  using store = await openCallStore(bus, { waiters: new KeyedListeners() });
  const large = { argumentsJson: JSON.stringify("x".repeat(16 * kib)) };
  for (let n = 0; (await filledPart(bus, callPlace)) < 0.4; n += 1)
    await store.create(recordOf(`his-${n}`, { ...large, principal: "mallory", state: State.PENDING }));
  for (let n = 0; (await filledPart(bus, callPlace)) < 0.95; n += 1)
    await store.create(recordOf(`theirs-${n}`, { ...large, principal: `one-${n % 10}` }));
  const clock = { ...systemClock, now: () => Date.now() + 2 * KEPT_MS };
  await evictValues(bus, { place: callPlace, keptMs: KEPT_MS, mayGo: mayLeave, clock }, signal);
  expect(await filledPart(bus, callPlace)).toBeLessThan(0.75);
  expect(await store.read("his-0")).toMatchObject({ state: State.PENDING });
});

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
