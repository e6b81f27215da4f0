import { expect, test } from "vitest";
import type { StoredPin } from "#gen/toolbus/internal/tool/v1/stored_pin_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { agent, catalogueOf, offer, tool } from "../../testing/fakes/tools.ts";
import type { Offer } from "../../tools/tool-set/offer.ts";
import { holdToPins } from "../../tools/tool-set/pins/hold-to-pins.ts";
import { createToolSet, type ToolSet } from "../../tools/tool-set/tool-set.ts";
import { Pins, type PinsOptions } from "./pins.ts";

const hosted = { executionType: ExecutionType.HOSTED };

/** What the audit trail is told of a catalogue's tool, as its provider comes and goes. */
function openPins() {
  const told: string[] = [];
  const clock = createManualClock();
  const pins = new Pins({
    pins: { bucket: {}, view: { get: () => undefined } } as unknown as PinsOptions["pins"],
    audit: ({ message = "" }) => void told.push(message),
    clock,
    onFault: () => {},
  });
  return {
    ...{ told, pins, clock },
    async settle(more: Partial<Offer>) {
      await pins.settle(toolsWith(more));
      await clock.advance(60_000);
    },
  };
}

function toolsWith(more: Partial<Offer>): ToolSet {
  return createToolSet(agent({ use: ["*"] }), catalogueOf(tool("count", hosted)), [
    { ...offer("worker", {}), ...more },
  ]);
}

function describedAs(outputSchemaJson: string): Partial<Offer> {
  const described = tool("count", { ...hosted, outputSchemaJson });
  return { tools: [{ $typeName: "toolbus.provider.v1.OfferedTool", source: "", resumable: false, tool: described }] };
}

test("SEC-4 a tool has not changed because its provider has not described it yet, or cannot", async () => {
  const { told, settle } = openPins();
  await settle({ isAwaited: true });
  await settle(describedAs('{"type":"object"}'));
  await settle({ failure: "it is away" });
  await settle(describedAs('{"type":"object"}'));
  expect(told).toEqual([]);
  await settle(describedAs('{"type":"string"}'));
  expect(told).toEqual([expect.stringContaining("the definition of tool count has changed from sha256:")]);
});

test("SEC-4 a second change within seconds is told as soon as its tools are used after them", async () => {
  const { told, pins, clock, settle } = openPins();
  await settle(describedAs('{"type":"object"}'));
  await pins.settle(toolsWith(describedAs('{"type":"string"}')));
  const tools = toolsWith(describedAs('{"type":"number"}'));
  await pins.settle(tools);
  expect([told.length, pins.isSettled(tools)], "at most one in ten seconds").toEqual([1, false]);
  await clock.advance(10_000);
  await pins.settle(tools);
  expect([told.length, pins.isSettled(tools)]).toEqual([2, true]);
});

/** Pins that are stored; `approve` takes the change that is listed. */
function openStored() {
  const store = { fails: 0, writes: 0 };
  const bucket = createMemoryBucket<StoredPin>({
    change(write) {
      if (store.fails-- > 0) throw new Error("the store is away");
      store.writes += 1;
      write();
    },
  });
  const stored = new Map<string, { value: StoredPin }>();
  const view = {
    get: (key: string) => stored.get(key),
    get entries() {
      return [...stored];
    },
    async reached() {
      stored.clear();
      for await (const { key, value } of bucket.list()) stored.set(key, { value });
    },
  };
  const clock = createManualClock();
  const parts = { pins: { bucket, view } as unknown as PinsOptions["pins"], audit: () => {}, clock, onFault: () => {} };
  const pins = new Pins(parts);
  const pinned = agent({ use: ["*"], pins: { count: "" } });
  return {
    ...{ store, clock, pins },
    offered: (schema: string) => holdToPins(toolsWith(describedAs(schema)), pinned, pins.approval),
    forget: () => pins.forget("tester").then(view.reached),
    approve: () =>
      pins.approve("tester", [{ reference: "count", digest: pins.changes("tester")[0]!.offeredDigest } as never], "me"),
  };
}

test.each([0, 1])(
  "SEC-4 of a pinned tool the last change is listed to be approved, after %d failures",
  async (failures) => {
    const { store, clock, pins, offered } = openStored();
    await pins.settle(offered('{"type":"object"}'));
    store.fails = failures;
    await pins.settle(offered('{"type":"string"}'));
    const last = offered('{"type":"number"}');
    await pins.settle(last);
    await clock.advance(10_000);
    await pins.settle(last);
    expect(pins.changes("tester")).toMatchObject([{ offered: { outputSchemaJson: '{"type":"number"}' } }]);
  },
);

test("SEC-4 two definitions of a pinned tool that stand side by side are each recorded once, and once more when approved", async () => {
  const { store, clock, pins, offered, approve } = openStored();
  await pins.settle(offered('{"type":"object"}'));
  const twoMinutes = async () => {
    const before = store.writes;
    let rebuiltFor = -1;
    let sets: ToolSet[] = [];
    for (let seconds = 0; seconds < 120; seconds += 1) {
      if (rebuiltFor !== store.writes) sets = ['{"type":"string"}', '{"type":"number"}'].map(offered);
      rebuiltFor = store.writes;
      for (const tools of sets) if (!pins.isSettled(tools)) await pins.settle(tools);
      await clock.advance(1_000);
    }
    return store.writes - before;
  };
  expect(await twoMinutes()).toBe(2);
  expect(await twoMinutes(), "sets that are made anew").toBe(0);
  await approve();
  expect(await twoMinutes(), "the other one can be approved now").toBe(1);
});

test("SEC-4 a change of a pinned tool is recorded again at once for an agent that is created anew", async () => {
  const { clock, pins, offered, forget } = openStored();
  for (const _ of ["first", "anew"]) {
    await pins.settle(offered('{"type":"object"}'));
    await pins.settle(offered('{"type":"string"}'));
    expect(pins.changes("tester")).toMatchObject([{ offered: { outputSchemaJson: '{"type":"string"}' } }]);
    await forget();
    await clock.advance(10_000);
  }
});

test("SEC-4 a definition of a pinned tool that comes back later is listed in place of the one before", async () => {
  const { clock, pins, offered } = openStored();
  for (const type of ["object", "string", "number", "string"]) {
    await pins.settle(offered(`{"type":"${type}"}`));
    await clock.advance(600_000);
  }
  expect(pins.changes("tester")).toMatchObject([{ offered: { outputSchemaJson: '{"type":"string"}' } }]);
});
