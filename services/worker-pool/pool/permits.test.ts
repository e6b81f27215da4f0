import fc from "fast-check";
import { expect, test } from "vitest";
import { createLine, createPermits } from "./permits.ts";

const never = new AbortController().signal;

const lineOf = (settings: Partial<Parameters<typeof createLine>[0]> = {}) =>
  createLine({ calls: 1, workers: 1, waiting: 100, overflow: "wait", ...settings });

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
        expect([permits.isFree, permits.hasWaiting, line.waiting.total]).toEqual([true, false, 0]);
      },
    ),
  );
});

test("WORK-10 who finds no place is refused, where so configured or when the line is full", async () => {
  for (const line of [lineOf({ overflow: "refuse" }), lineOf({ waiting: 0 })]) {
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

test("WORK-10 a principal that is alone in the pool has all places, and all of the line", async () => {
  const permits = createPermits(8, "places", lineOf({ waiting: 8 }));
  const held = await Promise.all(Array.from({ length: 8 }, () => permits.acquire(never, "local")));
  const waiting = Array.from({ length: 8 }, () => permits.acquire(never, "local"));
  await expect(permits.acquire(never, "local")).rejects.toThrow("all 8 places are taken, and 8 calls wait already");
  for (const giveBack of held) giveBack();
  expect(await Promise.all(waiting)).toHaveLength(8);
});

test("SEC-6 who takes all places and fills the line leaves the last eighth of both, and places that become free are for others first", async () => {
  const line = lineOf({ waiting: 16 });
  (await createPermits(1, "places elsewhere", line).acquire(never, "alice"))();
  const permits = createPermits(8, "places", line);
  const [begun, giveBack]: [string[], (() => void)[]] = [[], []];
  const ask = (principal: string) =>
    permits.acquire(never, principal).then((back) => {
      begun.push(principal);
      giveBack.push(back);
    });
  const asking = Array.from({ length: 21 }, () => ask("mallory"));
  await expect(ask("mallory")).rejects.toThrow("all places but those for others are taken, and 14 calls wait already");
  await ask("alice");
  const next = ["alice", "bob"].map(ask);
  expect(begun).toEqual([...Array.from({ length: 7 }, () => "mallory"), "alice"]);
  giveBack[0]!();
  giveBack[1]!();
  await Promise.all(next);
  expect(begun.slice(8)).toEqual(["bob", "alice"]);
  for (let at = 2; at < giveBack.length; at += 1) {
    giveBack[at]!();
    await new Promise(setImmediate);
  }
  await Promise.all(asking);
  expect([begun.length, permits.isFree, permits.hasWaiting]).toEqual([24, true, false]);
});
