import { expect, test } from "vitest";
import { attemptText } from "./attempts.ts";

test.each([
  [0, "attempt 0"],
  [1, "attempt 1"],
  [1_024, "attempt 1024"],
  [1_025, "attempt 1 after 1 takeover"],
  [2_051, "attempt 3 after 2 takeovers"],
])("attempt %d of a turn is told as %s", (attempt, text) => {
  expect(attemptText(attempt)).toBe(text);
});
