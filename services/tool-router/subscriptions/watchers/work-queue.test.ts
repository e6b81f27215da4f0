import { expect, test, vi } from "vitest";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { callRecord } from "../../calls/records/record/call-record.ts";
import { openWorkQueue } from "./work-queue.ts";

test("TOOL-6 however many tools are watched, only those have a consumer of which a call waits, and that comes at once", async () => {
  await using bus = await openTestBus();
  const came: string[] = [];
  using queue = openWorkQueue(bus, {
    onQueued: ({ record, ack }) => {
      came.push(record.callId);
      ack();
    },
    onFault: () => {},
  });
  const enqueue = (tool: string) =>
    queue.enqueue(callRecord({ callId: `of_${tool}`, tool, state: ToolCallState.WAITING }), "first");
  const consumers = async () => (await bus.manager.streams.info("TOOLBUS_OFFERS")).state.consumer_count;
  await enqueue("before");
  for (const tool of ["before", "later", "idle"]) queue.demand(tool, 1);
  await until(() => came.includes("of_before"), { what: "the call that waits", timeoutMs: 10_000 });
  expect(await consumers()).toBe(1);
  await enqueue("later");
  await until(() => came.includes("of_later"), { what: "the call that was queued", timeoutMs: 10_000 });
  expect(await consumers()).toBe(2);
});

test("TOOL-6 calls come to who watches their tool, also if there was no room for their consumer, or nobody heard that they wait", async () => {
  await using bus = await openTestBus();
  const { consumers } = bus.manager;
  const { connection } = bus;
  const faults: string[] = [];
  const add: typeof consumers.add = async (...given) => {
    if (faults.length === 0) throw new Error("no room");
    return consumers.add(...given);
  };
  const subscribe: typeof connection.subscribe = (subject, options) =>
    connection.subscribe(subject.replace(/^toolbus\.offer\./, "unheard."), options);
  const deaf = {
    manager: { ...bus.manager, consumers: Object.assign(Object.create(consumers), { add }) },
    connection: Object.assign(Object.create(connection), { subscribe }),
  };
  const came: string[] = [];
  using queue = openWorkQueue(Object.assign(Object.create(bus), deaf), {
    onQueued({ record, ack }) {
      came.push(record.callId);
      ack();
    },
    onFault: (fault) => void faults.push(fault),
  });
  const enqueue = (tool: string, standing: "first" | "again") =>
    queue.enqueue(callRecord({ callId: `of_${tool}`, tool, state: ToolCallState.WAITING }), standing);
  await enqueue("crowded", "first");
  for (const tool of ["crowded", "unheard"]) queue.demand(tool, 1);
  await until(() => came.includes("of_crowded"), { what: "the call that waits", timeoutMs: 10_000 });
  await enqueue("unheard", "again");
  const clock = performance.now.bind(performance);
  using _later = vi.spyOn(performance, "now").mockImplementation(() => clock() + 30_000);
  await until(() => came.includes("of_unheard"), { what: "the call that nobody heard of", timeoutMs: 10_000 });
});
