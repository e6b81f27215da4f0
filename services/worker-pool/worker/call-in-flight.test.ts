import { expect, test } from "vitest";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Answer } from "../calls/answer.ts";
import { CallInFlight } from "./call-in-flight.ts";

const TOO_MUCH = "the call asks more than 1000 times at once, or with more than 67108864 characters";

test("SEC-5 of what a call asks at once a few are carried out at a time, the rest in turn, and those beyond a bound are refused", async () => {
  const running: ((answer: Answer) => void)[] = [];
  let most = 0;
  const call = new CallInFlight("f", {
    onProgress() {},
    onLine() {},
    onAsk() {
      const { promise, resolve } = Promise.withResolvers<Answer>();
      most = Math.max(most, running.push(resolve));
      return promise;
    },
  });
  const asks = Array.from({ length: 1_500 }, () => call.ask({ kind: "list tools" }));
  const ended = Promise.allSettled(asks);
  for (let told = 0; told < 900; told += 1) {
    while (running.length === 0) await new Promise(setImmediate);
    running.shift()?.({ kind: "result", resultJson: "[]" });
  }
  call.end();
  while (running.length > 0) running.shift()?.({ kind: "result", resultJson: "[]" });
  const results = await ended;
  expect(most).toBe(16);
  expect(results.filter(({ status }) => status === "fulfilled").length).toBeLessThanOrEqual(916);
  expect(results.at(-1)).toMatchObject({ reason: { message: TOO_MUCH } });
  expect(results[999]).toMatchObject({ reason: { message: "the call that asked is over" } });
});

test("SEC-5 of what a call asks beyond those that are carried out, no more characters are kept than a bound", async () => {
  const call = new CallInFlight("f", {
    onProgress() {},
    onLine() {},
    onAsk: (_, signal) => unlessAborted(new Promise(() => {}), signal),
  });
  const argumentsJson = JSON.stringify("x".repeat(6_000_000)); // which all share
  const asks = Array.from({ length: 17 }, () => call.ask({ kind: "call tool", name: "a", argumentsJson }));
  const all = Promise.allSettled(asks);
  call.end();
  expect((await all)[16]).toMatchObject({ reason: { message: TOO_MUCH } });
});
