import fc from "fast-check";
import { expect, test } from "vitest";
import { createPermits, type Line } from "./permits.ts";

const never = new AbortController().signal;

const lineOf = (settings: Partial<Line> = {}): Line => ({ waiting: 0, limit: 100, overflow: "wait", ...settings });

test("WORK-10 places are given out in the order of asking, and never more than there are", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(fc.boolean(), { maxLength: 30 }),
      async (limit, leaves) => {
        const line = lineOf();
        const permits = createPermits(limit, "places", line);
        const order: number[] = [];
        const given: (() => void)[] = [];
        const cancels = leaves.map(() => new AbortController());
        const asked = leaves.map(async (_, index) => {
          const giveBack = await permits.acquire(cancels[index]!.signal).catch(() => undefined);
          if (!giveBack) return;
          order.push(index);
          given.push(giveBack);
          expect(given.length).toBeLessThanOrEqual(limit);
        });
        await Promise.resolve();
        leaves.forEach((isLeaving, index) => {
          if (isLeaving && index >= limit) cancels[index]!.abort();
        });
        for (let step = 0; step <= leaves.length; step += 1) {
          await new Promise(setImmediate);
          given.pop()?.();
        }
        await Promise.all(asked);
        expect(order).toEqual(leaves.flatMap((isLeaving, index) => (isLeaving && index >= limit ? [] : [index])));
        expect([permits.isFree, permits.hasWaiting, line.waiting]).toEqual([true, false, 0]);
      },
    ),
  );
});

test("WORK-10 who finds no place is refused, where so configured or when the line is full", async () => {
  for (const line of [lineOf({ overflow: "refuse" }), lineOf({ limit: 0 })]) {
    const permits = createPermits(1, "places", line);
    const giveBack = await permits.acquire(never);
    await expect(permits.acquire(never)).rejects.toMatchObject({ code: "resource_exhausted" });
    giveBack();
    giveBack();
    const again = await permits.acquire(never);
    expect(permits.isFull).toBe(true);
    again();
    expect(permits.isFree).toBe(true);
  }
});
