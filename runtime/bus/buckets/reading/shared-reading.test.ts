import { expect, test } from "vitest";
import { delay } from "../../../time/delay.ts";
import { attemptMs, callPatience } from "../../link/call-patience.ts";
import { sharedReading } from "./shared-reading.ts";

test("who asks while a reading is under way shares the next one, which sees what stood when it asked", async () => {
  let stands = 0;
  let readings = 0;
  let answer = Promise.withResolvers<void>();
  const read = sharedReading(async () => {
    readings += 1;
    const seen = stands;
    await answer.promise;
    return seen;
  });
  const first = read();
  stands = 1;
  const others = Array.from({ length: 100 }, read);
  answer.resolve();
  expect(await first).toBe(0);
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
  const [first, ...others] = [read(), read(), read()];
  expect(await first).toBe(1);
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
  const [first, second] = [callPatience.run(read), callPatience.run(read)];
  await Promise.all([first, second]);
  expect(leftMs[1]).toBeLessThanOrEqual((leftMs[0] ?? 0) - attemptMs);
});
