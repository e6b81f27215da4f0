import { expect, test, vi } from "vitest";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { callRecord } from "../../calls/records/record/call-record.ts";
import { openWorkQueue } from "./work-queue.ts";

test("SEC-5 whoever watches tools that do not exist makes no consumers; calls come once they are added, and those of a removed one", async () => {
  await using bus = await openTestBus();
  const tools = new Set(["there"]);
  const came: string[] = [];
  using queue = openWorkQueue(bus, {
    hasTool: (tool) => tools.has(tool),
    onQueued: ({ record, ack }) => {
      came.push(record.callId);
      ack();
    },
    onFault: () => {},
  });
  const enqueue = (tool: string) =>
    queue.enqueue(callRecord({ callId: `of_${tool}`, tool, state: ToolCallState.WAITING }), "first");
  await enqueue("removed");
  for (const tool of ["none", "later", "removed", "there"]) queue.demand(tool, 1);
  await enqueue("there");
  await until(() => came.length === 2, { what: "the calls that wait", timeoutMs: 10_000 });
  expect(came.toSorted()).toEqual(["of_removed", "of_there"]);
  const consumers = async () => (await bus.manager.streams.info("TOOLBUS_OFFERS")).state.consumer_count;
  expect(await consumers(), "none for who is not there").toBe(2);
  tools.add("later");
  await enqueue("later");
  await until(() => came.includes("of_later"), { what: "the call of the tool that was added", timeoutMs: 10_000 });
  expect(await consumers()).toBe(3);
});

test("TOOL-6 calls of a removed tool come to who watches it, also if there was no room for their consumer, or they come back later", async () => {
  await using bus = await openTestBus();
  const { consumers } = bus.manager;
  const faults: string[] = [];
  const add: typeof consumers.add = async (...given) => {
    if (faults.length === 0) throw new Error("no room");
    return consumers.add(...given);
  };
  const manager = { ...bus.manager, consumers: Object.assign(Object.create(consumers), { add }) };
  const came: string[] = [];
  using queue = openWorkQueue(Object.assign(Object.create(bus), { manager }), {
    hasTool: () => false,
    onQueued({ record, ack }) {
      came.push(record.callId);
      ack();
    },
    onFault: (fault) => void faults.push(fault),
  });
  const enqueue = (tool: string, standing: "first" | "again") =>
    queue.enqueue(callRecord({ callId: `of_${tool}`, tool, state: ToolCallState.WAITING }), standing);
  await enqueue("crowded", "first");
  for (const tool of ["crowded", "lost"]) queue.demand(tool, 1);
  await until(() => came.includes("of_crowded"), { what: "the call that waits", timeoutMs: 10_000 });
  await enqueue("lost", "again");
  const clock = performance.now.bind(performance);
  using _later = vi.spyOn(performance, "now").mockImplementation(() => clock() + 30_000);
  await until(() => came.includes("of_lost"), { what: "the call whose watcher was lost", timeoutMs: 10_000 });
});
