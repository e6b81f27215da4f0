import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { connectError } from "#runtime/failure/connect.ts";

beforeEach(() => {
  vi.useFakeTimers();
  vi.resetModules();
  vi.stubGlobal("sessionStorage", { getItem: () => null, setItem() {}, removeItem() {} });
  vi.stubGlobal("location", { origin: "http://suite" });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** The way to a suite, on which something is asked again and again whose answer takes so long. */
async function openWay() {
  const way = await import("./connection.ts");
  const ask = (takesMs: number) => {
    const asked = { isAnswered: false, isGivenUp: false };
    const signal = way.untilSilence(new AbortController().signal);
    const end = way.awaitAnswer();
    const timer = setTimeout(() => {
      end();
      asked.isAnswered = true;
      way.noteAnswer();
    }, takesMs);
    signal.addEventListener("abort", () => {
      end();
      clearTimeout(timer);
      asked.isGivenUp = true;
      way.noteFailure(signal.reason);
    });
    return asked;
  };
  return { ...way, ask };
}

it("an answer that takes longer than it is waited for is waited for longer", async () => {
  const { ask, noteAnswer } = await openWay();
  const asked = [ask(75_000)];
  for (const waitedMs of [10_000, 20_000, 40_000, 60_000, 60_000]) {
    vi.advanceTimersByTime(waitedMs - 1);
    expect(asked.at(-1)?.isGivenUp).toBe(false);
    vi.advanceTimersByTime(1);
    expect(asked.at(-1)?.isGivenUp).toBe(true);
    asked.push(ask(75_000));
  }
  noteAnswer();
  const next = ask(75_000);
  vi.advanceTimersByTime(10_000);
  expect(next.isGivenUp).toBe(true);
});

it("a page of an answer, or a refusal, is life; silence behind it is none", async () => {
  const { ask, noteAnswer, noteFailure, unreachableSince } = await openWay();
  const answerings = [
    noteAnswer,
    () => void noteFailure(connectError("resource_exhausted", "has its share", { reason: "SHARE_EXCEEDED" })),
    () => void noteFailure(new ConnectError("not yours", Code.PermissionDenied)),
  ];
  for (const answering of answerings) {
    const asked = ask(75_000);
    vi.advanceTimersByTime(6_000);
    answering();
    vi.advanceTimersByTime(6_000);
    expect(asked.isGivenUp).toBe(false);
    vi.advanceTimersByTime(10_000);
    expect(asked.isGivenUp).toBe(true);
    noteAnswer();
    expect(unreachableSince.value).toBeUndefined();
  }
});

it("what is asked anew after an answer is not told as not reached", async () => {
  const { ask, noteAnswer, unreachableSince } = await openWay();
  ask(75_000);
  vi.advanceTimersByTime(10_000);
  expect(unreachableSince.value).toBeDefined();
  const other = ask(75_000);
  noteAnswer();
  expect(other.isGivenUp).toBe(true);
  expect(unreachableSince.value).toBeUndefined();
});
