import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startCallTime } from "./call-time.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

const never = new AbortController().signal;

test("WORK-3 installing and starting are not counted as the call's time", () => {
  const time = startCallTime("f", 1_000, never);
  vi.advanceTimersByTime(600);
  time.pause();
  vi.advanceTimersByTime(60_000);
  time.resume();
  vi.advanceTimersByTime(399);
  expect(time.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(time.signal.reason).toMatchObject({
    message: "f timed out after 1000ms, while it waited for its place",
    reason: "CALL_NOT_STARTED",
  });
});

test("a call that is over has no time left to run out, and its caller's abort counts at any time", () => {
  const time = startCallTime("f", 1_000, never);
  time.end();
  vi.advanceTimersByTime(5_000);
  expect(time.signal.aborted).toBe(false);
  const caller = new AbortController();
  const other = startCallTime("f", 1_000, caller.signal);
  other.pause();
  caller.abort("left");
  expect(other.signal.reason).toBe("left");
});

test("a call may take weeks", () => {
  const dayMs = 24 * 60 * 60 * 1_000;
  const time = startCallTime("f", 30 * dayMs, never);
  vi.advanceTimersByTime(30 * dayMs - 1);
  expect(time.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(time.signal.aborted).toBe(true);
});
