import { expect, test } from "vitest";
import { Shares } from "./shares.ts";

const limits = { requestsPerSecond: 10, calls: 3, streams: 2 };

test("SEC-6 a principal has so many calls and streams at once, each for itself, and another has its own", () => {
  const shares = new Shares(limits, () => 0);
  const ends = [1, 2, 3].map(() => shares.take("mallory", "calls"));
  const refusal = { code: "resource_exhausted", reason: "SHARE_EXCEEDED" };
  expect(() => shares.take("mallory", "calls")).toThrow(
    expect.objectContaining({
      ...refusal,
      message: '"mallory" has its share of this gateway: 3 calls in flight; try again after 1000 ms',
      metadata: { share: "calls in flight", limit: "3", retry_in_ms: "1000" },
    }),
  );
  shares.take("mallory", "streams");
  shares.take("mallory", "streams");
  expect(() => shares.take("mallory", "streams")).toThrow(expect.objectContaining(refusal));
  shares.take("alice", "calls");
  ends[0]!();
  ends[0]!(); // once is enough
  shares.take("mallory", "calls");
  expect(() => shares.take("mallory", "calls")).toThrow(expect.objectContaining(refusal));
});

test("SEC-6 so many requests a second, of which those of two may come at once", () => {
  let now = 0;
  const shares = new Shares(limits, () => now);
  const ask = (principal = "mallory") => shares.take(principal, "calls")();
  for (let n = 0; n < 20; n++) ask();
  expect(() => ask()).toThrow(
    expect.objectContaining({
      reason: "SHARE_EXCEEDED",
      metadata: { share: "requests a second", limit: "10", retry_in_ms: "100" },
    }),
  );
  ask("alice");
  now += 100;
  ask();
  expect(() => ask()).toThrow(/requests a second/);
  now += 120_000;
  for (let n = 0; n < 20; n++) ask();
  expect(() => ask()).toThrow(/requests a second/);
});
