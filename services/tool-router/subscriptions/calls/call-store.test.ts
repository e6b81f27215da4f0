import { headers } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { createWaiters } from "../../calls/records/waiters.ts";
import { openCallStore } from "./call-store.ts";

let bus: TestBus;
beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

const open = async (...executing: string[]) =>
  openCallStore(await bus.connect(), { waiters: createWaiters(), executing: new Set(executing) });
const signal = new AbortController().signal;

test("R3 only the silence of all routers means that nobody executes a call", async () => {
  using store = await open();
  using _ = await open("held");
  expect(await store.isHeld("held", signal)).toBe(true);
  expect(await store.isHeld("orphan", signal)).toBe(false);
});

test("R3 a router that is slow to answer executes its call all the same", async () => {
  using store = await open();
  const slow = await bus.connect();
  slow.connection.subscribe("toolbus.call.held", {
    callback: (_, message) => {
      if (message.string() === "slow") void delay(600).then(() => message.respond());
    },
  });
  await slow.connection.flush();
  expect(await store.isHeld("slow", signal)).toBe(true);
});

test("R3 BUS-4 the loss of the bus is nobody's silence: the question is asked again after it", async () => {
  using store = await open();
  using _ = await open("held");
  await bus.server.kill();
  const asked = store.isHeld("held", signal);
  await bus.server.restart();
  expect(await asked).toBe(true);
});

test("who asks no longer is told so", async () => {
  using store = await open();
  const leaving = new AbortController();
  const asked = store.isHeld("orphan", leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(asked).rejects.toThrow("gone");
});

test("news that cannot be read is told as a fault, and who waits for the call reads what stands", async () => {
  const [waiters, faults] = [createWaiters(), [] as string[]];
  const onFault = (fault: string) => void faults.push(fault);
  using _ = await openCallStore(await bus.connect(), { waiters, executing: new Set(), onFault });
  let reads = 0;
  const waited = waiters.until("odd", async () => (++reads > 1 ? "read" : undefined), signal);
  await until(() => reads === 1);
  const fields = headers();
  fields.set("Toolbus-Call", "odd");
  fields.set("Toolbus-Revision", "7");
  bus.connection.publish("toolbus.call.changed", new Uint8Array([255, 255, 255]), { headers: fields });
  expect(await waited).toBe("read");
  expect(faults).toEqual([expect.stringMatching(/^news of call odd /)]);
});
