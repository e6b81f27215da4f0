import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { CancelToolCallRequestSchema } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { SELF } from "#runtime/rpc/identity.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import { createMemoryCalls } from "../../testing/fakes/memory-calls.ts";
import { MemoryOffers, MemoryPresence } from "../../testing/fakes/memory-watchers.ts";
import { success } from "../answers/answer.ts";
import { type CallRecordInit, callRecord } from "../records/record/call-record.ts";
import { createCancellation } from "../requests/cancellation.ts";
import { createLostWatchers } from "../watchers/lost-watchers.ts";
import { decideDueWork } from "./due.ts";
import { createDueWorker } from "./due-work.ts";
import { mayLeave } from "./retention.ts";

const { signal } = new AbortController();

function open() {
  const clock = createManualClock(1_000_000);
  const heldElsewhere = new Set<string>();
  const waiters = new KeyedListeners();
  const { store, records, running: executing } = createMemoryCalls(waiters, heldElsewhere);
  const [offers, presence] = [new MemoryOffers(), new MemoryPresence()];
  const [audited, told]: [AuditKind[], string[]] = [[], []];
  const audit = ({ kind }: { kind?: AuditKind }) => void audited.push(kind ?? AuditKind.UNSPECIFIED);
  const messages = {
    showResultOnce: async ({ spaceId }: { spaceId: string }) => void (spaceId && told.push(`space ${spaceId}`)),
    deliver: async ({ callId }: { callId: string }) => void told.push(`inbox ${callId}`),
  };
  const lostWatchers = createLostWatchers({ store, queue: offers, presence, audit, clock });
  const running = new Set<string>();
  const runningCalls = { ...executing, cancel: async (callId: string) => running.has(callId) };
  const { cancel } = createCancellation({ store, running: runningCalls, waiters, queue: offers, audit, clock });
  return {
    clock,
    store,
    heldElsewhere,
    records,
    offers,
    presence,
    audited,
    told,
    messages,
    running,
    runningCalls,
    dueWorker: createDueWorker({ store, running: executing, messages, queue: offers, lostWatchers, audit, clock }),
    cancel: (callId: string) => cancel(create(CancelToolCallRequestSchema, { callId }), SELF),
    put(more: CallRecordInit) {
      const facts = { callId: "c", tool: "weigh", executionType: ExecutionType.EXTERNAL, state: State.WAITING };
      const createdAt = timestampFromMs(clock.now());
      records.set("c", callRecord({ ...facts, createTime: createdAt, ...more }));
    },
    at: (ms: number) => timestampFromMs(clock.now() + ms),
  };
}

describe("what is due about a call", () => {
  test("TOOL-5 a wait that nobody ended is ended, and a call at its expiry takes no results any more", async () => {
    const { dueWorker, put, at, clock, records, audited } = open();
    put({ waitExpireTime: at(1_000), expireTime: at(10_000) });
    expect(await dueWorker.check("c", signal)).toBe(clock.now() + 2_000);
    await clock.advance(2_000);
    expect(await dueWorker.check("c", signal)).toBeUndefined();
    expect(records.get("c")?.state).toBe(State.PENDING);
    await clock.advance(8_000);
    await dueWorker.check("c", signal);
    expect(records.get("c")).toMatchObject({ state: State.EXPIRED, resolvedLate: true, result: { isError: true } });
    expect(audited).toEqual([AuditKind.TIMED_OUT, AuditKind.EXPIRED]);
  });

  test("TOOL-5 a call that nobody answers expires before the store forgets it, and its inbox is told", async () => {
    const { dueWorker, put, clock, records, told } = open();
    put({ state: State.PENDING });
    await clock.advance(29 * 24 * 60 * 60_000);
    await dueWorker.check("c", signal);
    expect(records.get("c")).toMatchObject({ state: State.EXPIRED, resolvedLate: true, result: { isError: true } });
    await dueWorker.check("c", signal);
    expect(told).toEqual(["inbox c"]);
  });

  test("TOOL-5 the answer that comes at the moment of the expiry wins or loses whole", async () => {
    const { dueWorker, put, at, clock, records, store } = open();
    put({ state: State.PENDING, expireTime: at(1_000) });
    await clock.advance(1_000);
    const answering = store.update("c", (record) =>
      record.state === State.PENDING ? { ...record, state: State.RESOLVED, result: success(1) } : undefined,
    );
    await Promise.all([answering, dueWorker.check("c", signal)]);
    expect(records.get("c")).toMatchObject({ state: State.RESOLVED, result: { outputJson: "1" } });
  });

  test("dispatcher-1 a call that its router could not offer is offered, once", async () => {
    const { dueWorker, put, offers } = open();
    put({});
    await dueWorker.check("c", signal);
    await dueWorker.check("c", signal);
    expect([...offers.standing.keys()]).toEqual(["c"]);
  });

  test("dispatcher-4 a call that a router has is not offered as long as it says so, and is when nobody does", async () => {
    const { dueWorker, put, offers, heldElsewhere, clock } = open();
    put({});
    heldElsewhere.add("c");
    expect(await dueWorker.check("c", signal)).toBe(clock.now() + 1_000);
    expect(offers.standing.size).toBe(0);
    heldElsewhere.delete("c");
    expect(await dueWorker.check("c", signal)).toBeGreaterThan(clock.now() + 1_000);
    expect([...offers.standing.keys()]).toEqual(["c"]);
  });

  test("TOOL-9 TOOL-10 a result is told to its space, and to the inbox when nobody waited; what fails is told again", async () => {
    const { dueWorker, put, told, messages } = open();
    put({ state: State.RESOLVED, result: success(1), spaceId: "room" });
    await dueWorker.check("c", signal);
    expect(told).toEqual(["space room"]);
    put({ state: State.RESOLVED, result: success(1), resolvedLate: true });
    const { deliver } = messages;
    messages.deliver = async () => {
      throw new Failure("unavailable", "no", { reason: "SERVICE_UNAVAILABLE" });
    };
    await dueWorker.check("c", signal);
    await expect(dueWorker.check("c", signal)).rejects.toThrow("no");
    messages.deliver = deliver;
    await dueWorker.check("c", signal);
    expect(told).toEqual(["space room", "inbox c"]);
  });

  test("TOOL-9 a result that an inbox has no room for is due until it is there, and its record stays so long", async () => {
    const { dueWorker, put, told, messages, records, clock } = open();
    put({ state: State.RESOLVED, result: success(1), resolvedLate: true });
    const { deliver } = messages;
    messages.deliver = async () => {
      throw new Failure("resource_exhausted", "full", { reason: "STORE_FULL" });
    };
    const before = records.get("c")!;
    await dueWorker.check("c", signal);
    const marked = records.get("c")!;
    expect(mayLeave(before)).toBe(true);
    expect(mayLeave(marked)).toBe(false);
    expect(decideDueWork(marked, before, clock.now())).toMatchObject({ kind: "check" });
    await expect(dueWorker.check("c", signal), "put back by the queue").rejects.toThrow("full");
    messages.deliver = deliver;
    await dueWorker.check("c", signal);
    expect(told).toEqual(["inbox c"]);
    expect(mayLeave(records.get("c")!)).toBe(true);
    expect(decideDueWork(records.get("c")!, marked, clock.now())).toEqual({ kind: "none" });
  });
});

describe("a taken call whose watcher is lost", () => {
  const taken = { taken: true, deliveryId: "w.1", watcherPrincipal: "p" };

  async function lookThroughGrace(parts: ReturnType<typeof open>) {
    const looking = parts.dueWorker.check("c", signal);
    await until(() => parts.clock.sleeping === 1);
    await parts.clock.advance(2_000);
    return looking;
  }

  test("LOOP-14 ends with an unknown outcome when it must not be repeated, and is offered to nobody", async () => {
    const parts = open();
    parts.put({ ...taken, effect: Effect.AT_MOST_ONCE });
    await lookThroughGrace(parts);
    expect(parts.records.get("c")).toMatchObject({
      state: State.RESOLVED,
      result: { isError: true, outputJson: expect.stringContaining("outcome_unknown: ") },
    });
    expect(parts.offers.standing.size).toBe(0);
    expect(parts.audited).toEqual([AuditKind.WATCHER_LOST]);
  });

  test.each([Effect.PURE, Effect.IDEMPOTENT])(
    "LOOP-14 is offered again when it may be repeated (%i)",
    async (effect) => {
      const parts = open();
      parts.put({ ...taken, effect });
      await lookThroughGrace(parts);
      expect(parts.records.get("c")).toMatchObject({ state: State.WAITING, taken: false, deliveryId: "" });
      expect([...parts.offers.standing.keys()]).toEqual(["c"]);
    },
  );

  test("TOOL-6 stays with a watcher that comes back in time, and with one that is there", async () => {
    const parts = open();
    parts.put({ ...taken, effect: Effect.AT_MOST_ONCE });
    const looking = parts.dueWorker.check("c", signal);
    await until(() => parts.clock.sleeping === 1);
    parts.presence.show({ token: "w", principal: "scales", tools: ["weigh"] }, () => {});
    await parts.clock.advance(2_000);
    expect(await looking).toBe(parts.clock.now() + 2_000);
    expect(await parts.dueWorker.check("c", signal)).toBe(parts.clock.now() + 2_000);
    expect(parts.records.get("c")).toMatchObject({ state: State.WAITING, taken: true });
  });

  test("dispatcher-2 keeps the answer that came during the grace", async () => {
    const parts = open();
    parts.put({ ...taken, effect: Effect.AT_MOST_ONCE });
    const looking = parts.dueWorker.check("c", signal);
    await until(() => parts.clock.sleeping === 1);
    await parts.store.update("c", (record) => ({ ...record, state: State.RESOLVED, result: success("done") }));
    await parts.clock.advance(2_000);
    await looking;
    expect(parts.records.get("c")?.result?.outputJson).toBe('"done"');
  });
});

describe("canceling", () => {
  test("LOOP-15 says whether it had started: not before its record, not while it waits, but when taken or run", async () => {
    const parts = open();
    expect(await parts.cancel("c")).toBe(false);
    expect(await parts.cancel("c")).toBe(false);
    parts.put({});
    expect(await parts.cancel("c")).toBe(false);
    expect(parts.records.get("c")).toMatchObject({ state: State.CANCELED, result: { isError: true } });
    parts.put({ taken: true, deliveryId: "w.1", effect: Effect.PURE });
    expect(await parts.cancel("c")).toBe(true);
    parts.put({ state: State.STARTED });
    expect(await parts.cancel("c")).toBe(true);
    parts.put({ state: State.RESOLVED, result: success(1) });
    expect(await parts.cancel("c")).toBe(true);
    expect(parts.records.get("c")?.result?.outputJson).toBe("1");
    parts.running.add("unrecorded");
    expect(await parts.cancel("unrecorded")).toBe(true);
  });

  test("LOOP-15 records-3 a canceled call whose router was lost is resolved as unknown, and one that is executed is left to its router", async () => {
    const { put, cancel, records, heldElsewhere, running } = open();
    put({ state: State.STARTED, effect: Effect.AT_MOST_ONCE });
    heldElsewhere.add("c");
    await cancel("c");
    expect(records.get("c")?.state).toBe(State.STARTED);
    heldElsewhere.delete("c");
    running.add("c"); // at a router that only follows it
    await cancel("c");
    expect(records.get("c")).toMatchObject({ state: State.RESOLVED, result: { isError: true } });
    expect(records.get("c")?.result?.outputJson).toContain("outcome_unknown");
  });

  test("LOOP-15 canceling waits for no answer of routers once the call has its result", async () => {
    const { put, cancel, records, store, runningCalls } = open();
    const asked = Promise.withResolvers<void>();
    runningCalls.isHeld = () => new Promise(() => asked.resolve());
    put({ state: State.STARTED });
    const canceled = cancel("c");
    await asked.promise;
    put({ state: State.RESOLVED, result: success(1) });
    store.announce("c");
    expect(await canceled).toBe(true);
    expect(records.get("c")?.result?.outputJson).toBe("1");
  });

  test("LOOP-15 a canceled call leaves its queue, and no result changes it", async () => {
    const parts = open();
    parts.put({});
    await parts.offers.enqueue(parts.records.get("c")!, "first");
    await parts.cancel("c");
    expect(parts.offers.standing.size).toBe(0);
    await parts.dueWorker.check("c", signal);
    expect(parts.told).toEqual([]);
  });
});
