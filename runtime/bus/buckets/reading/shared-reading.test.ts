import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { delay } from "../../../time/delay.ts";
import { attemptMs, callPatience } from "../../link/call-patience.ts";
import { sharedReading } from "./shared-reading.ts";

test("who asks at once shares a reading, and who asks while it is under way the next, which sees what stood then", async () => {
  let stands = 0;
  let readings = 0;
  let answer = Promise.withResolvers<void>();
  const read = sharedReading(async () => {
    readings += 1;
    const seen = stands;
    await answer.promise;
    return seen;
  });
  const first = Promise.all([read(), Promise.resolve().then(read)]);
  await new Promise<void>((resolve) => process.nextTick(resolve)); // no turn of the event loop
  stands = 1;
  const others = Array.from({ length: 100 }, read);
  answer.resolve();
  expect(await first).toEqual([0, 0]);
  expect(new Set(await Promise.all(others))).toEqual(new Set([1]));
  expect(readings).toBe(2);
  answer = Promise.withResolvers();
  answer.resolve();
  stands = 2;
  expect([await read(), readings]).toEqual([2, 3]);
});

test("a reading that fails is told to those who shared it, and the next begins anew", async () => {
  let readings = 0;
  const read = sharedReading(async () => {
    readings += 1;
    if (readings === 2) throw new Error("away");
    return readings;
  });
  expect(await read()).toBe(1);
  const others = [read(), read()];
  const told = await Promise.allSettled(others);
  expect(told.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await read()).toBe(3);
});

test("patience-1 what a call waits for the reading before its own is spent: that may have waited for the bus", async () => {
  const leftMs: number[] = [];
  const read = sharedReading(async () => {
    leftMs.push(callPatience.leftMs);
    await delay(attemptMs + 200);
  });
  const first = callPatience.run(read);
  await setImmediate();
  const second = callPatience.run(read);
  await Promise.all([first, second]);
  expect(leftMs[1]).toBeLessThanOrEqual((leftMs[0] ?? 0) - attemptMs);
});
