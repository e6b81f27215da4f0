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

test.each([0, 1])(
  "SEC-4 of a pinned tool the last change is listed to be approved, after %d failures",
  async (failures) => {
    let fails = 0;
    const bucket = createMemoryBucket<StoredPin>({
      change(store) {
        if (fails-- > 0) throw new Error("the store is away");
        store();
      },
    });
    const stored = new Map<string, { value: StoredPin }>();
    const view = {
      get: (key: string) => stored.get(key),
      get entries() {
        return [...stored];
      },
      async reached() {
        for await (const { key, value } of bucket.list()) stored.set(key, { value });
      },
    };
    const clock = createManualClock();
    const parts = {
      pins: { bucket, view } as unknown as PinsOptions["pins"],
      audit: () => {},
      clock,
      onFault: () => {},
    };
    const pins = new Pins(parts);
    const pinned = agent({ use: ["*"], pins: { count: "" } });
    const offered = (schema: string) => holdToPins(toolsWith(describedAs(schema)), pinned, pins.approval);
    await pins.settle(offered('{"type":"object"}'));
    fails = failures;
    await pins.settle(offered('{"type":"string"}'));
    const last = offered('{"type":"number"}');
    await pins.settle(last);
    await clock.advance(10_000);
    await pins.settle(last);
    expect(pins.changes("tester")).toMatchObject([{ offered: { outputSchemaJson: '{"type":"number"}' } }]);
  },
);
