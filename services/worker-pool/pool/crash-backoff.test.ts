import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CrashBackoff, refuseBackedOff } from "./crash-backoff.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: 1_000 }));
afterEach(() => void vi.useRealTimers());

test("WORK-8 the third crash in a row waits, and an answer makes the next two free again", () => {
  const crashes = new CrashBackoff({ backoffMs: 50, maxBackoffMs: 50 });
  const three = () => [1, 2, 3].map(() => crashes.noteCrash());
  expect(three()).toEqual([undefined, undefined, expect.closeTo(1_045, -1)]);
  crashes.reset();
  expect(three()).toEqual([undefined, undefined, expect.closeTo(1_045, -1)]);
});

test("WORK-8 a refused call is told how long it has to wait, until the time is over", () => {
  expect(() => refuseBackedOff("it", 1_250, "a crash")).toThrow(
    expect.objectContaining({
      code: "unavailable",
      reason: "WORKER_BACKED_OFF",
      message: "it keeps failing and is started again in 250 ms; last: a crash",
      metadata: { retry_in_ms: "250" },
    }),
  );
  expect(() => refuseBackedOff("it", 1_000)).not.toThrow();
});
