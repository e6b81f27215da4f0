import { expect, test } from "vitest";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { agent, catalogueOf, offer, tool } from "../../testing/fakes/tools.ts";
import type { Offer } from "../../tools/tool-set/offer.ts";
import { createToolSet } from "../../tools/tool-set/tool-set.ts";
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
    told,
    async settle(more: Partial<Offer>) {
      const catalogue = catalogueOf(tool("count", hosted));
      await pins.settle(createToolSet(agent({ use: ["*"] }), catalogue, [{ ...offer("worker", {}), ...more }]));
      await clock.advance(60_000);
    },
  };
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
