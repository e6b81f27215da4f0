import { expect, test } from "vitest";
import { Slots } from "./slots.ts";

/** Takes slots for a principal's runs while there are some for it; gives how many. */
function fill(slots: Slots, principal: string, most = Number.POSITIVE_INFINITY): Disposable[] {
  const held: Disposable[] = [];
  while (slots.free > 0 && held.length < most) {
    slots.take();
    if (slots.isFullFor(principal)) {
      slots.giveBack();
      break;
    }
    const place = slots.hold(principal);
    held.push({
      [Symbol.dispose]: () => {
        place[Symbol.dispose]();
        slots.giveBack();
      },
    });
  }
  return held;
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
