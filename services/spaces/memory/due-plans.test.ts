import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import type { MemoryRecord } from "#gen/toolbus/internal/space/v1/memory_pb.ts";
import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { MemoryEntrySchema, MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { createStores } from "../subscriptions.ts";
import { immortal, writeOrDie } from "../testing/memory-log.ts";
import { createDuePlans, openPlanClock } from "./due-plans.ts";
import { createMemory } from "./memory.ts";

const owner = { sessionId: "s", agent: "a" };
const plan = (key: string, dueMs: number, text = key) =>
  create(MemoryEntrySchema, { kind: MemoryKind.PLAN, key, text, dueTime: timestampFromMs(dueMs) });

/** Plans with an inbox that takes each event once and dies where it is told to. */
function createWorld() {
  const clock = createManualClock(1_000_000);
  const death = immortal();
  const records = createMemoryBucket<MemoryRecord>({ change: (store) => writeOrDie(death, store) });
  const events = new Map<string, InboxEvent>();
  const world = {
    deliveriesLeft: Number.POSITIVE_INFINITY,
    texts: () => [...events.values()].map(({ event }) => event.case === "plan" && event.value.text),
  };
  const inbox = {
    async deliver(event: InboxEvent) {
      if (world.deliveriesLeft-- <= 0) throw new Error("the process died");
      const duplicate = events.has(event.eventId);
      events.set(event.eventId, event);
      return { duplicate };
    },
  };
  const look = createDuePlans({ records, inbox, clock });
  const open = () => openPlanClock({ records, look, clock, logger: { warn() {} } });
  return Object.assign(world, { clock, death, records, memory: createMemory(records), look, open });
}

describe("plans with a time", () => {
  test("TOOL-12 a plan wakes its agent when its time comes, once, and is still there", async () => {
    const world = createWorld();
    await using _one = world.open();
    await using _two = world.open();
    await world.memory.set(owner, [plan("call", 1_060_000), plan("later", 9_000_000)]);
    await until(() => world.clock.sleeping === 2);
    await world.clock.advance(59_999);
    expect(world.texts()).toEqual([]);
    await world.clock.advance(1);
    await until(() => world.texts().length === 1);
    await world.clock.advance(60_000);
    expect(world.texts()).toEqual(["call"]);
    const [call, later] = await world.memory.list(owner, MemoryKind.PLAN);
    expect([call?.wakeTime !== undefined, later?.wakeTime]).toEqual([true, undefined]);
    expect((await world.records.read("s.a"))?.value.dueEvents).toEqual([]);
  });

  test("TOOL-12 a plan that was deleted or put off before its time does not wake its agent then", async () => {
    const world = createWorld();
    await using _ = world.open();
    await world.memory.set(owner, [plan("gone", 1_010_000), plan("moved", 1_010_000)]);
    await until(() => world.clock.sleeping === 1);
    await world.memory.delete(owner, MemoryKind.PLAN, ["gone"]);
    await world.memory.set(owner, [plan("moved", 1_020_000)]);
    await until(() => world.clock.sleeping === 1);
    await world.clock.advance(10_000);
    expect(world.texts()).toEqual([]);
    await world.clock.advance(10_000);
    await until(() => world.texts().length === 1);
    expect(world.texts()).toEqual(["moved"]);
  });

  test("TOOL-12 a time that passed while nobody was there is noticed by the first who starts", async () => {
    const world = createWorld();
    await world.memory.set(owner, [plan("missed", 1_010_000)]);
    await world.clock.advance(86_400_000);
    await using _ = world.open();
    await until(() => world.texts().length === 1);
    expect(world.texts()).toEqual(["missed"]);
  });

  test("TOOL-12 a plan makes one event wherever whoever looked at it died, also if it was deleted afterwards", async () => {
    const deaths = [0, 1, 2].flatMap((writes) => [0, 1].flatMap((told) => [{ writes, told }]));
    for (const { writes, told } of deaths) {
      const world = createWorld();
      await world.memory.set(owner, [plan("p", 1_000_000)]);
      Object.assign(world.death, { writesLeft: writes, isAfterStoring: told === 1 });
      world.deliveriesLeft = writes === 1 ? told : Number.POSITIVE_INFINITY;
      await world.look(owner).catch(() => {}); // the death that is tried
      Object.assign(world.death, immortal());
      world.deliveriesLeft = Number.POSITIVE_INFINITY;
      if (writes + told > 0) await world.memory.delete(owner, MemoryKind.PLAN, ["p"]);
      await world.look(owner);
      await world.look(owner);
      expect(world.texts(), `${writes} writes, ${told}`).toEqual(["p"]);
      expect((await world.records.read("s.a"))?.value.dueEvents).toEqual([]);
    }
  });

  test("TOOL-12 a plan that is set again wakes its agent again only if it was changed", async () => {
    const world = createWorld();
    await world.memory.set(owner, [plan("p", 1_000_000, "one")]);
    await world.look(owner);
    await world.memory.set(owner, [plan("p", 1_000_000, "one")]);
    await world.look(owner);
    expect(world.texts()).toEqual(["one"]);
    await world.memory.set(owner, [plan("p", 1_000_000, "two")]);
    await world.memory.set(owner, [plan("p", 1_000_000, "one")]);
    await world.look(owner);
    expect(world.texts()).toEqual(["one", "one"]);
  });

  test("TOOL-12 only plans have a time", async () => {
    const { memory } = createWorld();
    const goal = create(MemoryEntrySchema, { ...plan("g", 1), kind: MemoryKind.GOAL });
    await expect(memory.set(owner, [goal])).rejects.toThrow(/only plans may have/);
  });
});

test("TOOL-12 all plans that an agent may keep wake it, also when they are long and due at once", async () => {
  await using bus = await openTestBus();
  const { memory: records } = createStores(bus);
  const clock = createManualClock(1_000_000);
  const memory = createMemory(records);
  let kept = 0;
  const fill = async () => {
    for (; ; kept += 1) await memory.set(owner, [plan(`plan ${kept}`, 2_000_000, "長".repeat(65_536))]);
  };
  await expect(fill()).rejects.toMatchObject({ code: "resource_exhausted", reason: "MEMORY_FULL" });
  expect(kept).toBeGreaterThan(1);
  const delivered: InboxEvent[] = [];
  const inbox = { deliver: async (event: InboxEvent) => ({ duplicate: delivered.push(event) < 0 }) };
  await clock.advance(1_000_000);
  await createDuePlans({ records, inbox, clock })(owner);
  expect(delivered).toHaveLength(kept);
});
