import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { FreshRun } from "../queue.ts";
import { createAcceptedHere } from "./accepted-here.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function accept(runId: string) {
  const acceptedHere = createAcceptedHere();
  const run = {} as FreshRun;
  {
    using opened = acceptedHere.open(runId);
    opened.resolve(run);
  }
  return { run, take: () => acceptedHere.take(runId) };
}

test("LOOP-13 a run that was accepted here is passed on once", async () => {
  const { run, take } = accept("r");
  expect(await take()).toBe(run);
  expect(await take()).toBeUndefined();
});

test("SEC-5 a run whose wake-up went to another process is not held, with all that its client gave", async () => {
  const { take } = accept("r");
  vi.advanceTimersByTime(10_000);
  expect(await take()).toBeUndefined();
});
