import { headers } from "@nats-io/transport-node";
import { expect, test, vi } from "vitest";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { currentPrincipal, withPrincipal } from "#runtime/rpc/identity.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../../../test/harness/bus.ts";
import { callRecord } from "../../../calls/records/record/call-record.ts";
import { isOpen } from "../../../calls/records/record/states.ts";
import { openCallStore } from "./store.ts";

test("SEC-5 calls are listed as they stand, and a list reads what was written since the one before", async () => {
  await using bus = await openTestBus();
  const peer = await bus.connect();
  using store = await openCallStore(bus, { waiters: new KeyedListeners() });
  using other = await openCallStore(peer, { waiters: new KeyedListeners() });
  const { signal } = new AbortController();
  const openIds = async () =>
    Array.from(await store.list(signal))
      .flatMap(([callId, call]) => (isOpen(call) ? callId : []))
      .toSorted();
  const settle = async (callId: string) =>
    other.update(callId, (record) => ({ ...record, state: ToolCallState.RESOLVED }));
  await Promise.all(Array.from({ length: 600 }, (_, n) => other.create(callRecord({ callId: `ended-${n}` }))));
  for (const callId of ["a", "b"]) await other.create(callRecord({ callId, state: ToolCallState.WAITING }));
  expect(await openIds()).toEqual(["a", "b"]);
  const batches = vi.spyOn(bus.manager.direct, "getBatch");
  expect(await openIds()).toEqual(["a", "b"]);
  expect(batches).not.toHaveBeenCalled();
  await settle("a");
  await other.create(callRecord({ callId: "c", state: ToolCallState.PENDING }));
  expect(await openIds()).toEqual(["b", "c"]);
  expect(batches).toHaveBeenCalledTimes(1);
  await bus.server.kill();
  await bus.server.restart();
  await settle("c");
  expect(await openIds(), "after the loss of the server").toEqual(["b"]);
});

test("a call that left between two lists, and whose removal has left too, is known for ten minutes", async () => {
  await using bus = await openTestBus();
  using store = await openCallStore(bus, { waiters: new KeyedListeners() });
  const { signal } = new AbortController();
  const ids = async () => [...(await store.list(signal)).keys()];
  for (const callId of ["a", "b"]) await store.create(callRecord({ callId, state: ToolCallState.WAITING }));
  expect(await ids()).toEqual(["a", "b"]);
  await bus.manager.streams.purge("KV_toolbus_calls", { filter: "$KV.toolbus_calls.a" });
  const clock = performance.now.bind(performance);
  using _ = vi.spyOn(performance, "now").mockImplementation(() => clock() + 600_000);
  expect(await ids()).toEqual(["b"]);
});

test("SEC-5 what lists of calls share is read in nobody's turn: who reads much makes no other's wait", async () => {
  await using bus = await openTestBus();
  using store = await openCallStore(bus, { waiters: new KeyedListeners() });
  const { signal } = new AbortController();
  await store.create(callRecord({ callId: "a", state: ToolCallState.WAITING }));
  const principals: (string | undefined)[] = [];
  const read = bus.manager.direct.getBatch.bind(bus.manager.direct);
  using _ = vi.spyOn(bus.manager.direct, "getBatch").mockImplementation((...asked) => {
    principals.push(currentPrincipal());
    return read(...asked);
  });
  await withPrincipal("mallory", () => store.list(signal));
  expect(principals).toEqual([undefined]);
});

test("a change that cannot be read is a fault, and whoever waits for the call reads its record", async () => {
  await using bus = await openTestBus();
  const { signal } = new AbortController();
  const [waiters, faults] = [new KeyedListeners(), [] as string[]];
  const onFault = (fault: string) => void faults.push(fault);
  using _ = await openCallStore(bus, { waiters, onFault });
  let reads = 0;
  const waited = waiters.until("odd", async () => (++reads > 1 ? "read" : undefined), signal);
  await until(() => reads === 1);
  const fields = headers();
  fields.set("Toolbus-Call", "odd");
  fields.set("Toolbus-Revision", "7");
  bus.connection.publish("toolbus.call.changed", new Uint8Array([255, 255, 255]), { headers: fields });
  expect(await waited).toBe("read");
  expect(faults).toEqual([expect.stringMatching(/^the change of call odd /)]);
});
