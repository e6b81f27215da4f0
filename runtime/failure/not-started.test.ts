import { expect, test } from "vitest";
import { Failure } from "./failure.ts";
import { startedNothing } from "./not-started.ts";

test("LOOP-14 a refusal says that nothing was started, but not where its reason says that the outcome is unknown", () => {
  const refusal = (reason: "SHARE_EXCEEDED" | "OUTCOME_UNKNOWN") =>
    new Failure("resource_exhausted", "the answer has more than 2000000 values", { reason });
  expect(startedNothing(refusal("SHARE_EXCEEDED"))).toBe(true);
  expect(startedNothing(refusal("OUTCOME_UNKNOWN"))).toBe(false);
  expect(startedNothing(new Failure("unavailable", "gone", { reason: "CALL_NOT_STARTED" }))).toBe(true);
  expect(startedNothing(new Failure("unavailable", "gone", { reason: "SERVICE_UNAVAILABLE" }))).toBe(false);
  expect(startedNothing(new Error("not found"))).toBe(false);
});
