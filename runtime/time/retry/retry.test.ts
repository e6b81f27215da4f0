import { describe, expect, test } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { repeatUntilAborted, retryWhile } from "./retry.ts";

const waits = { initialMs: 100, maxMs: 1_000 };
const always = () => true;

/** Fails so often, then succeeds; counts. */
function failing(failures: number) {
  const calls: number[] = [];
  const action = async (): Promise<string> => {
    calls.push(calls.length + 1);
    if (calls.length <= failures) throw new Error(`failure ${calls.length}`);
    return "value";
  };
  return { calls, action };
}

/** A clock on which waiting takes no time. */
function quickClock() {
  let nowMs = 0;
  const delays: number[] = [];
  const delay = async (ms: number, signal?: AbortSignal) => {
    signal?.throwIfAborted();
    delays.push(ms);
    nowMs += ms;
  };
  return { now: () => nowMs, delay, delays };
}

describe("retryWhile", () => {
  test("tries again after waits that grow, and gives what comes at last", async () => {
    const clock = quickClock();
    const { action, calls } = failing(3);
    const told: number[] = [];
    expect(await retryWhile(always, action, { ...waits, clock, onRetry: (_, attempt) => told.push(attempt) })).toBe(
      "value",
    );
    expect([calls.length, told]).toEqual([4, [1, 2, 3]]);
    expect(clock.delays[2]).toBeGreaterThan(clock.delays[0] ?? Number.NaN);
  });

  test("throws at once what the condition does not hold for", async () => {
    const { action, calls } = failing(9);
    const isFirst = (error: unknown) => error instanceof Error && error.message === "failure 1";
    await expect(retryWhile(isFirst, action, { ...waits, clock: quickClock() })).rejects.toThrow("failure 2");
    expect(calls).toHaveLength(2);
  });

  test.each([
    ["its attempts are used up", { attempts: 3 }, "failure 3"],
    ["its patience is over", { patienceMs: 150 }, "failure 3"],
  ])("throws the last failure when %s", async (_, limit, message) => {
    const clock = quickClock();
    await expect(retryWhile(always, failing(99).action, { ...waits, clock, ...limit })).rejects.toThrow(message);
  });

  test("an aborted signal ends the wait with its reason", async () => {
    const clock = createManualClock();
    const abort = new AbortController();
    const { action, calls } = failing(9);
    const retrying = retryWhile(always, action, { ...waits, clock, signal: abort.signal });
    await clock.advance(0);
    abort.abort(new Error("nobody wants it"));
    await expect(retrying).rejects.toThrow("nobody wants it");
    expect(calls).toHaveLength(1);
  });

  test.each([
    ["gives its value", 1, "value"],
    ["fails for good", 9, "failure 2"],
  ])("closing ends the wait: one last attempt follows, and %s", async (_, failures, outcome) => {
    const clock = createManualClock();
    const closing = new AbortController();
    const { action, calls } = failing(failures);
    const retrying = retryWhile(always, action, { ...waits, clock, closing: closing.signal }).catch(
      (error) => error.message,
    );
    await clock.advance(0);
    closing.abort();
    expect([await retrying, calls.length]).toEqual([outcome, 2]);
  });
});

describe("repeatUntilAborted", () => {
  test("begins again what ends and what fails, after waits that grow until it works", async () => {
    const clock = quickClock();
    const abort = new AbortController();
    const errors: unknown[] = [];
    let runs = 0;
    const action = async (works: () => void) => {
      runs += 1;
      if (runs === 4) works();
      if (runs === 6) abort.abort();
      if (runs % 2 === 0) throw new Error(`failure ${runs}`);
    };
    await repeatUntilAborted(action, { ...waits, clock, signal: abort.signal, onError: (error) => errors.push(error) });
    expect([runs, errors]).toEqual([6, [new Error("failure 2"), new Error("failure 4")]]);
    expect(clock.delays[3]).toBeLessThanOrEqual(100);
    expect(clock.delays[2]).toBeGreaterThan(100);
  });

  test("ends when its action is done", async () => {
    const { signal } = new AbortController();
    let runs = 0;
    const action = async () => (++runs === 2 ? ("done" as const) : undefined);
    await repeatUntilAborted(action, { ...waits, clock: quickClock(), signal });
    expect(runs).toBe(2);
  });
});
