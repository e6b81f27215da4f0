import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { expect, test } from "vitest";
import { MemoryRecordSchema } from "#gen/toolbus/internal/space/v1/memory_pb.ts";
import { InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { SpaceEventSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { createStores } from "../subscriptions.ts";

const garbage = Uint8Array.of(0xff, 0xff, 0xff);

/** What a newer release adds to a message, whatever it is. */
function newer(bytes: Uint8Array): Uint8Array {
  return new BinaryWriter().raw(bytes).tag(1_000, WireType.LengthDelimited).string("of a newer release").finish();
}

async function take<T>(source: AsyncIterable<T>, count: number, stop: AbortController): Promise<T[]> {
  const taken: T[] = [];
  for await (const one of source) {
    taken.push(one);
    if (taken.length === count) stop.abort();
  }
  return taken;
}

test("TOOL-9 an inbox with records that cannot be read is read and followed past them", async () => {
  await using bus = await openTestBus();
  const { inbox } = createStores(bus);
  const event = (eventId: string) => toBinary(InboxEventSchema, create(InboxEventSchema, { eventId, sessionId: "s" }));
  for (const data of [garbage, newer(event("one")), new Uint8Array(), event("two")])
    await bus.jetstream.publish("toolbus.inbox.s", data);
  expect((await inbox.read("s", 0)).map(({ eventId }) => eventId)).toEqual(["one", "two"]);
  const stop = new AbortController();
  const followed = await take(inbox.follow("s", 0n, stop.signal), 4, stop);
  const gapAt = (sequence: bigint) => ({ case: "gap", value: { firstSequence: sequence, lastSequence: sequence } });
  expect(followed).toMatchObject([
    gapAt(1n),
    { case: "event", value: { eventId: "one", sequence: 2n } },
    gapAt(3n),
    { case: "event", value: { eventId: "two", sequence: 4n } },
  ]);
});

test("TOOL-13 a space's log with events that this release does not know is read, followed and written behind them", async () => {
  await using bus = await openTestBus();
  const { log } = createStores(bus);
  const joined = create(SpaceEventSchema, { event: { case: "memberJoined", value: { id: "ada", name: "Ada" } } });
  const unknown = newer(toBinary(SpaceEventSchema, create(SpaceEventSchema)));
  for (const data of [garbage, unknown]) await bus.jetstream.publish("toolbus.space.x", data);
  const state = await log.read("x");
  expect(state.sequence).toBe(2n);
  expect(await log.append("x", state.sequence, joined)).toBeDefined();
  expect([...(await log.read("x")).membersById.keys()]).toEqual(["ada"]);
  const stop = new AbortController();
  const followed = await take(log.follow("x", 1n, stop.signal), 3, stop);
  expect(followed).toMatchObject([
    { case: "event", value: { sequence: 1n, event: { case: undefined } } },
    { case: "event", value: { sequence: 2n, event: { case: undefined } } },
    { case: "event", value: { sequence: 3n, event: { case: "memberJoined" } } },
  ]);
});

test("memory keeps what a newer release wrote beside it, and is followed past what cannot be read", async () => {
  await using bus = await openTestBus();
  const { memory } = createStores(bus);
  const put = (key: string, value: Uint8Array) => bus.jetstream.publish(`$KV.toolbus_memory.${key}`, value);
  await put("broken", garbage);
  await put("s.a", newer(toBinary(MemoryRecordSchema, create(MemoryRecordSchema, { sessionId: "s", agent: "a" }))));
  expect(await Array.fromAsync(memory.list())).toMatchObject([{ value: { sessionId: "s" } }]);
  const { value } = await memory.update("s.a", (standing) => standing && { ...standing, agent: "b" });
  expect(fromBinary(MemoryRecordSchema, toBinary(MemoryRecordSchema, value!))).toMatchObject({
    agent: "b",
    $unknown: [{ no: 1_000 }],
  });
  const stop = new AbortController();
  expect(await take(memory.follow({ signal: stop.signal }), 2, stop)).toMatchObject([
    { kind: "unreadable", key: "broken" },
    { kind: "set", value: { agent: "b" } },
  ]);
});
