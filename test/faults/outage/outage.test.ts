// The short form of `npm run faults -- outage`: real processes, two strikes.

import { expect, test } from "vitest";
import { projectRoot } from "../../architecture/source-files.ts";
import { runOutages } from "./run.ts";

test("BUS-2 LOOP-14 KIND-1 one of two instances is silent: calls go to the other, and what is lost is said to be lost", {
  timeout: 300_000,
}, async () => {
  const result = await runOutages({
    tree: projectRoot,
    seed: 1,
    nodes: 1,
    kinds: ["freeze", "stop"],
    strikes: 2,
    leastMs: 5_000,
    mostMs: 6_000,
    slowBroker: true,
    onProgress: () => {},
  });
  expect(result.unaskedEnds).toEqual([]);
  expect(result.violations).toEqual([]);
  expect(result.history.calls.length).toBeGreaterThan(50);
});
