import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { notSent, unknownOutcome } from "#runtime/rpc/nats/call/delivery.ts";
import { follow } from "./call.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** What a client is told of a call that failed so, and again and again with nobody there. */
async function toldOf(first: Error) {
  const failures = [first];
  const followed = follow(
    {
      // biome-ignore lint/correctness/useYield: it has nothing to give but its error
      async *callTool() {
        throw failures.shift() ?? notSent("no instance of tool-router is there");
      },
      options: {},
      takeCall: () => () => {},
      answers: { forms: false, urls: false },
    },
    { callId: "c1", name: "pay", argumentsJson: "{}" },
    { signal: new AbortController().signal, notify: async () => {}, ask: async () => undefined },
  ).catch((error: unknown) => failureFromConnectError(error).reason);
  await vi.advanceTimersByTimeAsync(60_000);
  return followed;
}

it("LOOP-14 a call that may have begun is told so when nobody can be asked for it any more", async () => {
  expect(await toldOf(unknownOutcome("tool-router fell silent"))).toBe("OUTCOME_UNKNOWN");
  expect(await toldOf(notSent("no instance of tool-router is there"))).toBe("SERVICE_UNAVAILABLE");
});
