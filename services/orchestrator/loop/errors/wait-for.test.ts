import { expect, test } from "vitest";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { Failure, type FailureCode } from "#runtime/failure/failure.ts";
import { waitFor } from "./wait-for.ts";

const minuteMs = 60_000;

/** What comes of asking a service that is away for so long. */
async function afterOutage(awayMs: number, code: FailureCode = "unavailable") {
  let nowMs = 0;
  const clock = {
    now: () => nowMs,
    delay: async (ms: number) => {
      nowMs += ms;
    },
  };
  const { signal } = new AbortController();
  const ask = async () => {
    if (nowMs < awayMs) throw new Failure(code, "nobody answers", { reason: "SERVICE_UNAVAILABLE" });
    return "back";
  };
  return waitFor({ clock, signal, endReason: RunEndReason.TOOLS_UNAVAILABLE, what: "the tools cannot be listed" }, ask);
}

test("LOOP-13 a service that is away for minutes, or too slow, ends no run", async () => {
  expect(await afterOutage(5 * minuteMs)).toBe("back");
  expect(await afterOutage(5 * minuteMs, "deadline_exceeded")).toBe("back");
});

test("LOOP-1 one that stays away, and one that refuses, end it and are told", async () => {
  const failed = { endReason: RunEndReason.TOOLS_UNAVAILABLE, message: "the tools cannot be listed: nobody answers" };
  await expect(afterOutage(60 * minuteMs)).rejects.toMatchObject(failed);
  await expect(afterOutage(1, "not_found")).rejects.toMatchObject(failed);
});
