import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CrashBackoff, refuseBackedOff } from "./crash-backoff.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_000 });
  vi.spyOn(Math, "random").mockReturnValue(0);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("WORK-8 the third crash in a row waits, and an answer makes the next two free again", () => {
  const crashes = new CrashBackoff({ backoffMs: 50, maxBackoffMs: 50 });
  const three = () => [1, 2, 3].map(() => crashes.noteCrash());
  expect(three()).toEqual([undefined, undefined, 1_050]);
  crashes.reset();
  expect(three()).toEqual([undefined, undefined, 1_050]);
});

test("WORK-8 a refused call is told how long it has to wait, until the time is over", () => {
  expect(() => refuseBackedOff(1_250, "a crash")).toThrow(
    expect.objectContaining({
      code: "unavailable",
      reason: "WORKER_BACKED_OFF",
      message: "it keeps failing and is started again in 250 ms; last: a crash",
      metadata: { retry_in_ms: "250" },
    }),
  );
  expect(() => refuseBackedOff(1_000, "a crash")).not.toThrow();
});
