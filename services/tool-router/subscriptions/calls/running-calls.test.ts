import { afterAll, beforeAll, expect, test } from "vitest";
import { createSessionOwners } from "#runtime/rpc/access/session-owners.ts";
import { delay } from "#runtime/time/delay.ts";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { InFlightCalls } from "../../calls/in-flight.ts";
import { openRunningCalls } from "./running-calls.ts";

let bus: TestBus;
beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

const open = async (...executing: string[]) =>
  openRunningCalls(await bus.connect(), {
    isExecuting: (callId) => executing.includes(callId),
    inFlight: new InFlightCalls(),
    ownership: createSessionOwners(async () => undefined),
    onFault: (fault) => expect(fault).toBeUndefined(),
  });
const signal = new AbortController().signal;

test("records-3 only the silence of all routers means that nobody executes a call", async () => {
  using calls = await open();
  using _ = await open("held");
  expect(await calls.isHeld("held", signal)).toBe(true);
  expect(await calls.isHeld("orphan", signal)).toBe(false);
});

test("records-3 a router that is slow to answer executes its call all the same", async () => {
  using calls = await open();
  const slow = await bus.connect();
  slow.connection.subscribe("toolbus.call.held", {
    callback: (_, message) => {
      if (message.string() === "slow") void delay(600).then(() => message.respond());
    },
  });
  await slow.connection.flush();
  expect(await calls.isHeld("slow", signal)).toBe(true);
});

test("records-3 BUS-4 the loss of the bus is nobody's silence: the question is asked again after it", async () => {
  using calls = await open();
  using _ = await open("held");
  await bus.server.kill();
  const asked = calls.isHeld("held", signal);
  await bus.server.restart();
  expect(await asked).toBe(true);
});

test("who asks no longer is told so", async () => {
  using calls = await open();
  const leaving = new AbortController();
  const asked = calls.isHeld("orphan", leaving.signal);
  leaving.abort(new Error("gone"));
  await expect(asked).rejects.toThrow("gone");
});
