import { expect, test } from "vitest";
import { Slots } from "./slots.ts";

/** Takes slots for a principal's runs while there are some for it; gives how many. */
function fill(slots: Slots, principal: string, most = Number.POSITIVE_INFINITY): Disposable[] {
  const held: Disposable[] = [];
  while (slots.free > 0 && held.length < most) {
    slots.take();
    const place = slots.begin(principal);
    if (place === undefined) {
      slots.giveBack();
      break;
    }
    held.push(withSlot(slots, place));
  }
  return held;
}

function withSlot(slots: Slots, place: Disposable): Disposable {
  return {
    [Symbol.dispose]: () => {
      place[Symbol.dispose]();
      slots.giveBack();
    },
  };
}

test("SEC-6 one principal gets all slots but the last eighth, which others find free", () => {
  const slots = new Slots(1_024);
  expect(fill(slots, "mallory")).toHaveLength(896);
  expect(fill(slots, "alice")).toHaveLength(128);
  expect(slots.free).toBe(0);
});

test("SEC-6 as slots become free, who has less than an equal part gets them, until all have one", () => {
  const slots = new Slots(80);
  const hers = fill(slots, "mallory");
  const others = ["alice", "bob"].flatMap((principal) => fill(slots, principal, 5));
  expect([hers.length, others.length]).toEqual([70, 10]);
  for (const place of hers.splice(0, 40)) place[Symbol.dispose]();
  expect(fill(slots, "mallory"), "while there are enough, everybody gets some").toHaveLength(30);
  for (const place of hers.splice(0, 20)) place[Symbol.dispose]();
  expect(fill(slots, "alice")).toHaveLength(20);
  expect(fill(slots, "mallory"), "she has her part").toHaveLength(0);
  expect(fill(slots, "bob")).toHaveLength(10);
});

test("SEC-6 a run that has lent its slot counts for nobody", () => {
  const slots = new Slots(8);
  const held = fill(slots, "mallory");
  expect(held).toHaveLength(7);
  const lent = slots.lend("mallory");
  expect(fill(slots, "mallory")).toHaveLength(1);
  lent[Symbol.dispose]();
  expect(slots.free).toBe(0);
  for (const place of held) place[Symbol.dispose]();
  expect(fill(slots, "mallory"), "one is still at work").toHaveLength(6);
});

test("SEC-6 fewer than eight slots have no part that is left free", () => {
  expect(fill(new Slots(1), "mallory")).toHaveLength(1);
  expect(fill(new Slots(7), "mallory")).toHaveLength(7);
});

test("SEC-6 runs that may have no slot get the next ones in the order in which they came, and no slot stands idle", async () => {
  const slots = new Slots(8);
  const held = fill(slots, "mallory");
  const begun: string[] = [];
  const wait = async (name: string, principal: string) => {
    slots.take();
    const place = await slots.beginInTurn(principal, new AbortController().signal);
    begun.push(name);
    return withSlot(slots, place as Disposable);
  };
  const waiting = ["first", "second", "third"].map((name) => wait(name, "mallory"));
  expect(slots.free, "who waits has none").toBe(1);
  for (const name of ["first", "second", "third"]) {
    held.shift()?.[Symbol.dispose]();
    await waiting.shift();
    expect([begun.at(-1), slots.free]).toEqual([name, 1]);
  }
  expect(fill(slots, "alice")).toHaveLength(1);
  const [hers, his] = [wait("hers", "mallory"), wait("his", "bob")];
  held.shift()?.[Symbol.dispose]();
  await his;
  expect(begun.at(-1), "who has no part goes first").toBe("his");
  held.shift()?.[Symbol.dispose]();
  held.shift()?.[Symbol.dispose]();
  await hers;
});

test("SEC-6 as many wait as there are slots, and who waits no longer has its slot as before", async () => {
  const slots = new Slots(8);
  const held = fill(slots, "mallory");
  const leaving = new AbortController();
  const waiting = Array.from({ length: 8 }, () => {
    slots.take();
    return slots.beginInTurn("mallory", leaving.signal).catch((error: unknown) => error);
  });
  expect(slots.isFullFor("mallory"), "one slot is left").toBe(false);
  slots.take();
  expect([slots.isFullFor("mallory"), slots.isFullFor("alice")]).toEqual([true, false]);
  expect(await slots.beginInTurn("mallory", leaving.signal)).toBeUndefined();
  slots.giveBack();
  leaving.abort(new Error("left"));
  expect(await Promise.all(waiting)).toEqual(Array(8).fill(leaving.signal.reason));
  expect(slots.free).toBe(-7);
  for (const _ of waiting) slots.giveBack();
  for (const place of held) place[Symbol.dispose]();
  expect(slots.free).toBe(8);
});

test("LOOP-17 who waits for a free slot hears of one after another that a run in hand has taken", async () => {
  const slots = new Slots(1);
  slots.take();
  const first = withSlot(slots, slots.hold("mallory"));
  const lent = slots.lend("mallory");
  slots.take();
  lent[Symbol.dispose]();
  const second = slots.beginInTurn("mallory", new AbortController().signal);
  const free = slots.untilFree(new AbortController().signal);
  first[Symbol.dispose]();
  withSlot(slots, (await second) as Disposable)[Symbol.dispose]();
  await free;
}, 5_000);
