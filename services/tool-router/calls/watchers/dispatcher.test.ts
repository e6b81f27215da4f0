import { createSecretKey } from "node:crypto";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { createMemoryCalls } from "../../testing/fakes/memory-calls.ts";
import { MemoryOffers, MemoryPresence } from "../../testing/fakes/memory-watchers.ts";
import { success } from "../answers/answer.ts";
import { type CallRecord, callRecord } from "../records/record/call-record.ts";
import { createAcknowledgements } from "../requests/acknowledgements.ts";
import { DeliveryIds } from "./delivery-id.ts";
import { Dispatcher } from "./dispatcher.ts";
import type { WatcherMessage } from "./watcher.ts";

function open(isHanded = false, acknowledgeMs = 60_000) {
  const calls = createMemoryCalls(new KeyedListeners());
  const offers = new MemoryOffers();
  const presence = new MemoryPresence();
  const left: string[] = [];
  const onLeft = (taken: CallRecord[]) => left.push(...taken.map(({ callId }) => callId));
  const deliveryIds = new DeliveryIds(createSecretKey(new Uint8Array(32)));
  const dispatcher = new Dispatcher({
    deliveryIds,
    mayWatch: () => true,
    queue: offers,
    presence,
    store: calls.store,
    onWatcherLost: onLeft,
    acknowledgeMs,
  });
  offers.onOffer = (offer) => dispatcher.onQueued(offer);
  if (isHanded) offers.onHand = (offer) => dispatcher.deliver(offer);
  const { acknowledge } = createAcknowledgements({ store: calls.store, deliveryIds, clock: systemClock });
  return {
    ...calls,
    offers,
    presence,
    dispatcher,
    left,
    async call(callId: string, tool = "weigh"): Promise<void> {
      const executionType = ExecutionType.EXTERNAL;
      const record = callRecord({ callId, tool, state: State.WAITING, executionType });
      await calls.store.create(record);
      if (!offers.deliver(record)) await offers.enqueue(record, "first");
    },
    async take({ call, deliveryId }: WatcherMessage): Promise<void> {
      dispatcher.onChanged(
        await acknowledge(
          { $typeName: "toolbus.tool.v1.AcknowledgeToolCallRequest", callId: call.callId, deliveryId },
          "scales",
        ),
      );
    },
    async resolve(callId: string, more: Partial<CallRecord> = {}): Promise<void> {
      const updated = await calls.store.update(callId, (record) => ({
        ...record,
        state: State.RESOLVED,
        result: success(1),
        ...more,
      }));
      dispatcher.onChanged(updated!.record);
    },
    /** A watcher that reads as long as it is not told to leave. */
    watch(token: string, limit = 10, tools = ["weigh"], act: (one: WatcherMessage) => void = () => {}) {
      const leaving = new AbortController();
      const handed: WatcherMessage[] = [];
      const ended = (async () => {
        for await (const one of dispatcher.watch({ token, principal: "scales", tools, limit }, leaving.signal)) {
          handed.push(one);
          act(one);
        }
      })().catch((error: unknown) => error);
      return {
        handed,
        ended,
        ids: () => handed.map(({ call }) => call.callId),
        leave: () => leaving.abort(new Error("left")),
      };
    },
  };
}

describe("the watcher that gets a call", () => {
  test("TOOL-6 each call goes to one of the watchers of its tool, to the one that has the fewest in its hands", async () => {
    const parts = open();
    const [one, two, other] = [parts.watch("one"), parts.watch("two"), parts.watch("other", 10, ["order"])];
    for (let n = 0; n < 6; n++) await parts.call(`c${n}`);
    await until(() => one.handed.length + two.handed.length === 6);
    expect([one.handed.length, two.handed.length, other.handed.length]).toEqual([3, 3, 0]);
    expect(new Set([...one.ids(), ...two.ids()]).size).toBe(6);
  });

  test("TOOL-6 calls that come one by one are shared, too", async () => {
    const parts = open();
    const [one, two] = [parts.watch("one"), parts.watch("two")];
    for (let n = 0; n < 4; n++) {
      await parts.call(`c${n}`);
      await until(() => one.handed.length + two.handed.length === n + 1);
      await parts.resolve(`c${n}`);
    }
    expect([one.handed.length, two.handed.length]).toEqual([2, 2]);
  });

  test("TOOL-6 a watcher holds no more than its limit until it acknowledges or answers, and no more is demanded", async () => {
    const parts = open();
    const slow = parts.watch("slow", 2);
    for (let n = 0; n < 5; n++) await parts.call(`c${n}`);
    await until(() => slow.handed.length === 2);
    expect(parts.offers.demands.get("weigh")).toBe(0);
    expect(parts.offers.standing.size).toBe(5);
    await parts.take(slow.handed[0]!);
    await parts.resolve(slow.handed[1]!.call.callId);
    await until(() => slow.handed.length === 4);
    expect(parts.offers.standing.size).toBe(3); // what is taken or answered has left the queue
  });

  test("TOOL-6 what was not acknowledged goes on when the watcher leaves, what was taken is reported", async () => {
    const parts = open();
    const first = parts.watch("first");
    await parts.call("taken");
    await parts.call("given back");
    await until(() => first.handed.length === 2);
    await parts.take(first.handed[0]!);
    const second = parts.watch("second");
    first.leave();
    await until(() => second.handed.length === 1);
    expect(second.ids()).toEqual(["given back"]);
    expect(parts.left).toEqual(["taken"]);
    expect(parts.presence.watchers.has("first")).toBe(false);
  });

  test("TOOL-6 a watcher that acknowledges nothing, however much it asks for, keeps next to nothing from one that answers", async () => {
    const parts = open(true);
    const [hung, quick] = [parts.watch("hung", 1_000), parts.watch("quick", 4)];
    for (let n = 0; n < 20; n++) {
      await parts.call(`c${n}`);
      await until(() => hung.handed.length + quick.handed.length === n + 1);
      if (quick.ids().includes(`c${n}`)) await parts.resolve(`c${n}`);
    }
    expect([hung.handed.length, quick.handed.length]).toEqual([1, 19]);
  });

  test("TOOL-6 what a watcher does not acknowledge in time goes to another, who alone can take it then", async () => {
    const parts = open(true, 200);
    const hung = parts.watch("hung", 1_000);
    for (let n = 0; n < 20; n++) await parts.call(`c${n}`);
    await until(() => hung.handed.length === 20);
    const taken: string[] = [];
    parts.watch("quick", 4, ["weigh"], (one) => void parts.take(one).then(() => taken.push(one.call.callId)));
    await until(() => taken.length >= 19); // one at a time is still tried with the other
    const first = taken[0]!;
    const late = parts.take(hung.handed.find(({ call }) => call.callId === first)!);
    await expect(late).rejects.toThrow(/has been handed to another watcher/);
  });

  test("dispatcher-6 a watcher that let a call time out gets one at a time, after the others, until it acknowledges one", async () => {
    const parts = open(true, 400);
    const hung = parts.watch("hung", 10);
    for (let n = 0; n < 4; n++) await parts.call(`c${n}`);
    await until(() => hung.handed.length >= 5); // the fifth is one that comes back
    await until(() => parts.offers.demands.get("weigh") === 0);
    expect(parts.offers.inHands.size).toBe(1);
    await parts.take(hung.handed.at(-1)!);
    await until(() => parts.offers.inHands.size === 3);
  });

  test("dispatcher-4 a call that comes back is read first: if it is resolved or acknowledged by then, no watcher gets it", async () => {
    const parts = open();
    const first = parts.watch("first");
    await parts.call("answered");
    await parts.call("taken elsewhere");
    await until(() => first.handed.length === 2);
    await parts.store.update("answered", (record) => ({ ...record, state: State.RESOLVED, result: success(1) })); // its news is late
    await parts.store.update("taken elsewhere", (record) => ({ ...record, taken: true, deliveryId: "other.1" }));
    const second = parts.watch("second");
    first.leave();
    await until(() => parts.offers.standing.size === 0);
    expect(second.handed).toEqual([]);
  });

  test("dispatcher-4 a call that the queue redelivers to the router that holds it goes to no watcher again", async () => {
    const parts = open();
    const holder = parts.watch("holder");
    await parts.call("held");
    await until(() => holder.handed.length === 1);
    const settled = Promise.withResolvers<void>();
    const record = parts.records.get("held")!;
    parts.dispatcher.onQueued({
      record,
      isOld: true,
      ack: settled.resolve,
      release: () => settled.reject(new Error("no")),
    });
    await parts.resolve("held");
    await settled.promise; // by the newer offer
    expect(holder.handed).toHaveLength(1);
  });

  test("dispatcher-2 of two who hold a call the one that is too late is told that it is withdrawn", async () => {
    const parts = open();
    const holder = parts.watch("holder");
    await parts.call("contested");
    await until(() => holder.handed.length === 1);
    await parts.store.update("contested", (record) => ({ ...record, taken: true, deliveryId: "other.1" }));
    parts.dispatcher.onChanged(parts.records.get("contested")!);
    await until(() => holder.handed.length === 2);
    expect(holder.handed[1]).toMatchObject({ withdrawn: true, call: { callId: "contested" } });
    await expect(parts.take(holder.handed[0]!)).rejects.toThrow(/has been handed to another watcher/);
  });

  test("LOOP-15 a canceled call is withdrawn from the watcher that has it, taken or not; an answered one is not", async () => {
    const parts = open();
    const holder = parts.watch("holder");
    for (const callId of ["handed", "taken", "answered"]) await parts.call(callId);
    await until(() => holder.handed.length === 3);
    await parts.take(holder.handed[1]!);
    await parts.resolve("answered");
    await parts.resolve("taken", { state: State.CANCELED });
    await parts.resolve("handed", { state: State.CANCELED });
    await until(() => holder.handed.length === 5);
    expect(holder.handed.slice(3).map(({ call }) => call.callId)).toEqual(["taken", "handed"]);
  });

  test("a second stream under the same name ends the first", async () => {
    const parts = open();
    const old = parts.watch("same");
    const back = parts.watch("same");
    expect(String(await old.ended)).toMatch(/has opened another stream/);
    await parts.call("c");
    await until(() => back.handed.length === 1);
  });

  test("dispatcher-6 a call that ended between its reading and its delivery does not keep its room", async () => {
    const parts = open();
    const holder = parts.watch("holder", 1);
    const record = callRecord({ callId: "raced", tool: "weigh", state: State.WAITING });
    await parts.store.create(record);
    const { read } = parts.store;
    parts.store.read = async (callId) => {
      parts.store.read = read;
      const standing = await read(callId);
      await parts.resolve(callId); // nobody here has it yet, and so nobody hears it
      return standing;
    };
    const settled = Promise.withResolvers<void>();
    parts.dispatcher.onQueued({ record, isOld: true, ack: settled.resolve, release: () => {} });
    await settled.promise;
    await parts.call("next");
    await until(() => holder.ids().includes("next"));
  });

  test("dispatcher-6 of an acknowledgement that comes too late whoever still has the call hears what stands", async () => {
    const parts = open(true);
    const holder = parts.watch("holder", 1);
    await parts.call("over");
    await until(() => holder.handed.length === 1);
    await parts.store.update("over", (record) => ({ ...record, state: State.RESOLVED, result: success(1) })); // its news is lost
    parts.store.announce = (callId) => parts.dispatcher.onChanged(parts.records.get(callId)!);
    await expect(parts.take(holder.handed[0]!)).rejects.toThrow(/is already resolved/);
    await parts.call("next");
    await until(() => holder.ids().includes("next"));
  });

  test("TOOL-5 a call whose expiry has come is not taken any more, though nobody has ended it yet", async () => {
    const parts = open();
    const holder = parts.watch("holder");
    await parts.call("late");
    await until(() => holder.handed.length === 1);
    const expireTime = timestampFromMs(Date.now() - 1);
    await parts.store.update("late", (record) => ({ ...record, expireTime }));
    await expect(parts.take(holder.handed[0]!)).rejects.toMatchObject({ reason: "CALL_EXPIRED" });
    expect(parts.records.get("late")?.taken).toBe(false);
  });

  test("after a loss of changes the dispatcher reads what it holds", async () => {
    const parts = open();
    const holder = parts.watch("holder", 1);
    await parts.call("first");
    await until(() => holder.handed.length === 1);
    await parts.store.update("first", (record) => ({ ...record, state: State.RESOLVED, result: success(1) }));
    await parts.call("second");
    await parts.dispatcher.rereadAll();
    await until(() => holder.handed.length === 2);
  });
});

describe("calls that come straight from the router that recorded them", () => {
  test("TOOL-6 dispatcher-6 go to the watcher that has the fewest; when nobody has any, they stand in the queue", async () => {
    const parts = open(true);
    const [one, two] = [parts.watch("one", 2), parts.watch("two", 1)];
    for (let n = 0; n < 4; n++) await parts.call(`c${n}`);
    await until(() => one.handed.length + two.handed.length === 3);
    expect([one.handed.length, two.handed.length]).toEqual([2, 1]);
    expect([...parts.offers.standing.keys()]).toEqual(["c3"]);
    await parts.resolve("c0");
    await until(() => [...one.ids(), ...two.ids()].includes("c3"));
  });

  test("dispatcher-4 go into the queue when the watcher leaves, and are read before another gets them", async () => {
    const parts = open(true);
    const first = parts.watch("first");
    await parts.call("answered");
    await parts.call("given back");
    await until(() => first.handed.length === 2);
    expect([parts.dispatcher.holds("given back"), parts.offers.standing.size]).toEqual([true, 0]);
    await parts.store.update("answered", (record) => ({ ...record, state: State.RESOLVED, result: success(1) })); // its news is late
    first.leave();
    await until(() => parts.offers.standing.size === 2);
    expect(parts.dispatcher.holds("given back")).toBe(false);
    const second = parts.watch("second");
    await until(() => second.handed.length === 1 && parts.offers.standing.size === 1);
    expect(second.ids()).toEqual(["given back"]);
  });

  test("dispatcher-1 go to no other watcher when they come again", async () => {
    const parts = open(true);
    const holder = parts.watch("holder");
    await parts.call("held");
    expect(parts.offers.deliver(parts.records.get("held")!)).toBe(true);
    await until(() => holder.handed.length > 0);
    expect(holder.handed).toHaveLength(1);
  });
});
