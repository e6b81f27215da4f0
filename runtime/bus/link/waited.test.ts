import { afterEach, expect, test, vi } from "vitest";
import { delay } from "../../time/delay.ts";
import { comesInTime, countWaiting, inTime, isPatienceOver, patienceLeftMs, whileWaitedFor } from "./waited.ts";

afterEach(() => void vi.restoreAllMocks());

test("BUS-6 a call that lives long has its patience again at the next outage", () => {
  const startedAt = performance.now();
  const at = (ms: number) => void vi.spyOn(performance, "now").mockReturnValue(startedAt + ms);
  at(0);
  whileWaitedFor(() => {
    at(7_000);
    countWaiting(startedAt);
    expect(isPatienceOver()).toBe(true);
    at(12_000);
    expect(patienceLeftMs(), "the same outage").toBe(1_000);
    at(17_001);
    expect(patienceLeftMs()).toBe(6_500);
  });
});

test("BUS-6 what a call waits for at the same time counts once", async () => {
  const waited = async () => {
    await Promise.all([1, 2, 3, 4, 5].map(() => inTime("reading", delay(1_200))));
    expect(patienceLeftMs()).toBeGreaterThan(5_000);
    const together = performance.now();
    await delay(300);
    for (const earlierMs of [200, 0, 100]) countWaiting(together + earlierMs);
    expect(patienceLeftMs()).toBeLessThan(5_010);
    expect(patienceLeftMs()).toBeGreaterThan(4_700);
  };
  await whileWaitedFor(waited);
});

test("BUS-6 a call that has waited for the bus waits for nothing else longer than it may", async () => {
  const never = new Promise(() => {});
  const waited = async () => {
    expect(await comesInTime(delay(1_200)), "nothing has kept it waiting").toBe(true);
    expect(patienceLeftMs(), "what took long counts").toBeLessThan(5_400);
    countWaiting(performance.now() - 5_200);
    expect(await comesInTime(Promise.resolve())).toBe(true);
    const sinceMs = performance.now();
    expect(await comesInTime(never)).toBe(false);
    expect(await comesInTime(never), "at once, as its patience is over").toBe(false);
    expect(performance.now() - sinceMs).toBeLessThan(1_900);
  };
  await whileWaitedFor(waited);
});
