import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { MovingDeadline } from "./moving-deadline.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a call's time stands still from the first question to the last answer, where questions overlap", () => {
  using time = new MovingDeadline({ deadlineMs: Date.now() + 1_000 });
  const one = time.pause();
  vi.advanceTimersByTime(5_000);
  const other = time.pause();
  one[Symbol.dispose]();
  vi.advanceTimersByTime(100);
  other[Symbol.dispose]();
  vi.advanceTimersByTime(999);
  expect(time.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(time.signal.aborted).toBe(true);
});

test("a call that is over has no time left to run out, and its caller's abort counts at any time", () => {
  const time = new MovingDeadline({ deadlineMs: Date.now() + 1_000 });
  time[Symbol.dispose]();
  vi.advanceTimersByTime(5_000);
  expect(time.signal.aborted).toBe(false);
  const caller = new AbortController();
  using other = new MovingDeadline({ deadlineMs: Date.now() + 1_000 }, caller.signal);
  using _ = other.pause();
  caller.abort("left");
  expect(other.signal.reason).toBe("left");
});

test("a call may take weeks", () => {
  const dayMs = 24 * 60 * 60 * 1_000;
  using time = new MovingDeadline({ deadlineMs: Date.now() + 30 * dayMs, reason: () => "over" });
  vi.advanceTimersByTime(30 * dayMs - 1);
  expect(time.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(time.signal.reason).toBe("over");
});
