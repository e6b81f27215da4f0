import { expect, test } from "vitest";
import { hopsFrom } from "./peer-headers.ts";

test("a request that another instance passed on says how often it was", () => {
  expect([null, "0", "1", "12"].map(hopsFrom)).toEqual([0, 0, 1, 12]);
});

test.each(["", " ", "-1", "1.5", "x", "NaN", "1e1", "0x1", "1, 2", "9".repeat(400)])(
  "hops of %j are too many",
  (text) => {
    expect(hopsFrom(text)).toBe(Number.POSITIVE_INFINITY);
  },
);
