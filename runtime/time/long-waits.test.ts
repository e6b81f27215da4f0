import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { delay } from "./delay.ts";
import { timeoutSignal } from "./timeout-signal.ts";

const dayMs = 24 * 60 * 60 * 1_000;
const longWaitsMs = [2 ** 31 - 1, 2 ** 31, 30 * dayMs, 2 ** 32 + 1, 365 * dayMs];

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe.each(longWaitsMs)("a wait of %i ms", (ms) => {
  test("lasts as long as told when it is a delay", async () => {
    const over = vi.fn();
    void delay(ms).then(over);
    await vi.advanceTimersByTimeAsync(ms - 1);
    expect(over).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(over).toHaveBeenCalledOnce();
  });

  test("lasts as long as told when it is a signal's", async () => {
    const signal = timeoutSignal(ms);
    await vi.advanceTimersByTimeAsync(ms - 1);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(signal.reason).toMatchObject({ name: "TimeoutError" });
  });
});

test("a wait without end never comes and can be stopped", async () => {
  const controller = new AbortController();
  const waiting = delay(Number.POSITIVE_INFINITY, controller.signal);
  const refused = expect(waiting).rejects.toThrow("enough");
  await vi.advanceTimersByTimeAsync(90 * dayMs);
  controller.abort(new Error("enough"));
  await refused;
  expect(vi.getTimerCount()).toBe(0);
});

test("a long wait is stopped in its later part too", async () => {
  const controller = new AbortController();
  const waiting = expect(delay(60 * dayMs, controller.signal)).rejects.toThrow("stop");
  const signal = timeoutSignal(60 * dayMs);
  await vi.advanceTimersByTimeAsync(40 * dayMs);
  controller.abort(new Error("stop"));
  signal[Symbol.dispose]();
  await waiting;
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(40 * dayMs);
  expect(signal.aborted).toBe(false);
});
