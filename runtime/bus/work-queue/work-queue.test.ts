import { expect, test } from "vitest";
import { openTestBus } from "../../../test/harness/bus.ts";
import { delay } from "../../time/delay.ts";
import { until } from "../../time/until.ts";
import type { Bus } from "../bus.ts";
import { openWorkQueue, type Work, type WorkQueue } from "./work-queue.ts";

const { signal: lasting } = new AbortController();
const options = { stream: "TOOLBUS_WAKES", name: "workers", ackWaitMs: 600, heartbeatMs: 100, fetchMs: 3_000 };

const add = (bus: Bus, session: string) => bus.jetstream.publish(`toolbus.wake.${session}`, session);

async function take(queue: WorkQueue, count = 1): Promise<Work[]> {
  const taken: Work[] = [];
  while (taken.length < count) for await (const work of queue.next(count - taken.length, lasting)) taken.push(work);
  return taken;
}

const textOf = (work: Work | undefined) => work?.message.string();

test("BUS-4 work-queue-2 what is worked on stays here for as long as it takes; what is left goes to another process", async () => {
  await using bus = await openTestBus();
  const other = await bus.connect();
  const [here, there] = [await openWorkQueue(bus, options), await openWorkQueue(other, options)];
  await add(bus, "kept");
  await add(bus, "left");
  const [kept, left] = await take(here, 2);
  left?.leave();
  const [taken] = await take(there);
  expect([textOf(kept), textOf(left), textOf(taken)]).toEqual(["kept", "left", "left"]);
  expect(taken?.message.info.deliveryCount).toBe(2);
  kept?.done();
  taken?.done();
  const isEmpty = async () => (await bus.manager.streams.info("TOOLBUS_WAKES")).state.messages === 0;
  await until(isEmpty, { what: "the queue to be empty" });
});

test("work-queue-3 what is put back comes again, what is refused does not", async () => {
  await using bus = await openTestBus();
  const queue = await openWorkQueue(bus, options);
  await add(bus, "later");
  await add(bus, "never");
  const [later, never] = await take(queue, 2);
  never?.refuse("nobody can read it");
  later?.later(20);
  const [again] = await take(queue);
  expect([textOf(again), again?.message.info.deliveryCount]).toEqual(["later", 2]);
  again?.done();
  await until(async () => (await bus.manager.streams.info("TOOLBUS_WAKES")).state.messages === 0);
});

test("work-queue-4 a consumer that the server lost is created again, and one that stands otherwise is changed", async () => {
  await using bus = await openTestBus();
  await openWorkQueue(bus, { ...options, ackWaitMs: 5_000 });
  const queue = await openWorkQueue(bus, options);
  expect((await bus.manager.consumers.info(options.stream, options.name)).config.ack_wait).toBe(600 * 1_000_000);
  await bus.manager.consumers.delete(options.stream, options.name);
  await expect(take(queue)).rejects.toThrow();
  await add(bus, "found");
  const [found] = await take(queue);
  expect(textOf(found)).toBe("found");
  found?.done();
});

test("work-queue-5 who works for long on the last that was asked for is told of no silence", async () => {
  await using bus = await openTestBus();
  const queue = await openWorkQueue(bus, { ...options, fetchMs: 1_000 });
  await add(bus, "first");
  await add(bus, "last");
  for await (const work of queue.next(2, lasting)) {
    await delay(2_000); // four times as long as a server with nothing more to send is silent for
    work.done();
  }
  const open = async () => (await bus.manager.consumers.info(options.stream, options.name)).num_ack_pending;
  await until(async () => (await open()) === 0);
});

test("work-queue-5 nor who works for longer than is waited for more", async () => {
  await using bus = await openTestBus();
  const queue = await openWorkQueue(bus, { ...options, fetchMs: 1_000 });
  await add(bus, "first");
  const seen: string[] = [];
  for await (const work of queue.next(3, lasting)) {
    seen.push(work.message.string());
    await delay(4_000);
    work.done();
  }
  expect(seen).toEqual(["first"]);
});

test("work-queue-1 no more is fetched than was asked for, and nothing is given when the signal has aborted", async () => {
  await using bus = await openTestBus();
  const queue = await openWorkQueue(bus, options);
  for (const name of ["one", "two", "three"]) await add(bus, name);
  const stopping = new AbortController();
  const given: (string | undefined)[] = [];
  for await (const work of queue.next(2, stopping.signal)) {
    given.push(textOf(work));
    work.done();
    stopping.abort();
  }
  expect(given).toEqual(["one"]);
  const info = await bus.manager.consumers.info(options.stream, options.name);
  expect(info.num_pending, "nobody has asked for the third").toBe(1);
});
