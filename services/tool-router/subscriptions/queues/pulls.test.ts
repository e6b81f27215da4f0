import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { errors, type Msg } from "@nats-io/transport-node";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Bus } from "#runtime/bus/bus.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { openPulls } from "./pulls.ts";

const noRoom = () => new JetStreamApiError({ code: 500, err_code: 10_047, description: "no room" });

test.each([
  ["has no leader for longer than a call waits", () => new errors.TimeoutError()],
  ["has no room for a consumer", noRoom],
])("TOOL-6 the calls of a tool come to who watches it, also if the store %s when it begins", async (_, fault) => {
  await using bus = await openTestBus();
  const goodAtMs = performance.now() + 2_500;
  const { consumers } = bus.manager;
  const add: JetStreamManager["consumers"]["add"] = async (...given) => {
    if (performance.now() < goodAtMs) throw fault();
    return consumers.add(...given);
  };
  const manager = { ...bus.manager, consumers: Object.assign(Object.create(consumers), { add }) };
  const came: string[] = [];
  const faults: string[] = [];
  using pulls = openPulls(Object.assign(Object.create(bus), { manager }), {
    stream: "TOOLBUS_OFFERS",
    ackWaitMs: 3_000,
    onMessage: ({ subject }) => void came.push(subject),
    onFault: (told) => void faults.push(told),
  });
  callPatience.run(() => pulls.demand({ consumer: "tool_x", filter: "toolbus.offer.x.*", description: "x" }, 64), 0);
  await bus.jetstream.publish("toolbus.offer.x.c1", "a call");
  await until(() => came.length > 0, { what: "the call", timeoutMs: 15_000 });
  expect(came).toEqual(["toolbus.offer.x.c1"]);
  expect(faults.length).toBeLessThan(2);
});

test.each([
  ["while messages are asked of it", 64],
  ["while nothing is asked of it", 0],
])("TOOL-6 a consumer that is removed %s is made anew", async (_, demanded) => {
  await using bus = await openTestBus();
  const came: string[] = [];
  using pulls = openPulls(bus, {
    stream: "TOOLBUS_OFFERS",
    ackWaitMs: 3_000,
    onMessage: ({ subject }) => void came.push(subject),
    onFault: () => {},
  });
  const queue = { consumer: "tool_x", filter: "toolbus.offer.x.*", description: "x" };
  pulls.demand(queue, 64);
  await bus.jetstream.publish("toolbus.offer.x.c1", "a call");
  await until(() => came.length === 1, { what: "the first call" });
  pulls.demand(queue, demanded);
  await bus.manager.consumers.delete("TOOLBUS_OFFERS", "tool_x");
  await bus.jetstream.publish("toolbus.offer.x.c2", "a call");
  pulls.demand(queue, 64);
  await until(() => came.includes("toolbus.offer.x.c2"), { what: "the second call", timeoutMs: 10_000 });
});

test("TOOL-6 a queue to which nothing comes any more lets its consumer go, while its tool is watched, and the next call comes at once", async () => {
  await using bus = await openTestBus();
  const { consumers } = bus.manager;
  const add: JetStreamManager["consumers"]["add"] = async (stream, settings) =>
    consumers.add(stream, { ...settings, inactive_threshold: 1_000_000_000 });
  const manager = { ...bus.manager, consumers: Object.assign(Object.create(consumers), { add }) };
  const publish: Bus["connection"]["publish"] = (subject, payload, options) =>
    bus.connection.publish(subject, String(payload).replace(/"expires":\d+/, '"expires":300000000'), options);
  const connection = Object.assign(Object.create(bus.connection), { publish });
  const came: Msg[] = [];
  using pulls = openPulls(Object.assign(Object.create(bus), { manager, connection }), {
    stream: "TOOLBUS_OFFERS",
    ackWaitMs: 3_000,
    onMessage: (message) => void came.push(message),
    onFault: () => {},
  });
  pulls.demand({ consumer: "tool_x", filter: "toolbus.offer.x.*", description: "x" }, 64);
  for (const count of [1, 2]) {
    await bus.jetstream.publish(`toolbus.offer.x.c${count}`, "a call");
    await until(() => came.length === count, { what: `call ${count}` });
    came.at(-1)?.respond("+ACK");
    const isGone = async () => (await bus.manager.streams.info("TOOLBUS_OFFERS")).state.consumer_count === 0;
    await until(isGone, { what: `the end of the consumer after call ${count}`, timeoutMs: 15_000 });
  }
});

test("a consumer that cannot be made is tried by one attempt after the other, however long nobody answers", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let attempts = 0;
  const add = () => {
    attempts += 1;
    return attempts === 1 ? Promise.resolve() : new Promise(() => {});
  };
  const info = async () => ({ state: { subjects: { "toolbus.offer.x.c1": 1 } } });
  const connection = { subscribe: () => ({ drain: async () => {}, unsubscribe() {} }), publish() {}, options: {} };
  const { signal: down } = new AbortController();
  const link = { isUp: true, down, onReturn: () => () => {}, storage: { patienceMs: Number.POSITIVE_INFINITY } };
  using pulls = openPulls({ connection, link, manager: { streams: { info }, consumers: { add } } } as object as Bus, {
    ...{ stream: "TOOLBUS_OFFERS", ackWaitMs: 3_000, onMessage: () => {}, onFault: () => {} },
  });
  pulls.demand({ consumer: "tool_x", filter: "toolbus.offer.x.*", description: "x" }, 64);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(attempts, "its request has time to be answered").toBe(1);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(attempts).toBeGreaterThan(20);
  expect(attempts).toBeLessThan(70);
});
