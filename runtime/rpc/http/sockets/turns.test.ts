import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { Turns } from "./turns.ts";

test("SEC-5 what a client that waits for answers sends begins at once", () => {
  const begun: number[] = [];
  const turns = new Turns();
  const connection = {};
  for (let n = 0; n < 16; n += 1) turns.begin(connection, () => begun.push(n));
  expect(begun).toHaveLength(16);
});

test("SEC-5 of a thousand requests at once a few begin in each turn of the event loop, in their order", async () => {
  const begun: number[] = [];
  const turns = new Turns();
  const flooding = {};
  for (let n = 0; n < 1_000; n += 1) turns.begin(flooding, () => begun.push(n));
  let [before, most] = [begun.length, 0];
  while (begun.length < 1_000) {
    await turn();
    most = Math.max(most, begun.length - before);
    before = begun.length;
  }
  expect(most).toBeLessThanOrEqual(32); // two turns, where this one is between them
  expect(begun).toEqual([...begun].sort((a, b) => a - b));
});

test("SEC-5 each connection has its turn, however much another one has sent before it", async () => {
  const begun: string[] = [];
  const turns = new Turns();
  const [flooding, other] = [{}, {}];
  for (let n = 0; n < 1_000; n += 1) turns.begin(flooding, () => begun.push("flooding"));
  turns.begin(other, () => begun.push("other"));
  while (!begun.includes("other")) await turn();
  expect(begun.indexOf("other")).toBeLessThan(50);
});
