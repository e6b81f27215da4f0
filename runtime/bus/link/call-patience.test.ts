import { afterEach, expect, test, vi } from "vitest";
import { delay } from "../../time/delay.ts";
import { tickedMs } from "../../time/testing/machine-time.ts";
import { callPatience } from "./call-patience.ts";

afterEach(() => void vi.restoreAllMocks());

test("BUS-6 a call that lives long has its patience again at the next outage", () => {
  const startedAt = performance.now();
  const at = (ms: number) => void vi.spyOn(performance, "now").mockReturnValue(startedAt + ms);
  at(0);
  callPatience.run(() => {
    at(7_000);
    callPatience.spend(startedAt);
    expect(callPatience.isOver).toBe(true);
    at(12_000);
    expect(callPatience.leftMs, "the same outage").toBe(1_000);
    at(17_001);
    expect(callPatience.leftMs).toBe(6_500);
  });
});

test("BUS-6 what a call waits for at the same time counts once", async () => {
  const waited = async () => {
    await Promise.all([1, 2, 3, 4, 5].map(() => callPatience.limit("reading", delay(1_200))));
    expect(callPatience.leftMs).toBeGreaterThan(5_000);
    const together = performance.now();
    await delay(300);
    for (const earlierMs of [200, 0, 100]) callPatience.spend(together + earlierMs);
    expect(callPatience.leftMs).toBeLessThan(5_010);
    expect(callPatience.leftMs).toBeGreaterThan(4_700);
  };
  await callPatience.run(waited);
});

test("BUS-6 a call that has waited for the bus waits for nothing else longer than it may", async () => {
  const never = new Promise(() => {});
  const waited = async () => {
    expect(await callPatience.outlasts(delay(1_200)), "nothing has kept it waiting").toBe(true);
    expect(callPatience.leftMs, "what took long counts").toBeLessThan(5_400);
    callPatience.spend(performance.now() - 5_200);
    expect(await callPatience.outlasts(Promise.resolve())).toBe(true);
    const sinceMs = tickedMs();
    expect(await callPatience.outlasts(never)).toBe(false);
    expect(await callPatience.outlasts(never), "at once, as its patience is over").toBe(false);
    expect(tickedMs() - sinceMs).toBeLessThan(1_900);
  };
  await callPatience.run(waited);
});
