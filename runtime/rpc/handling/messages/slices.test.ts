import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { ownTurn } from "../../../collections/turns/own-turn.ts";
import { until } from "../../../time/until.ts";
import { openSlices } from "./slices.ts";

function busy(ms: number): void {
  for (const endsAt = performance.now() + ms; performance.now() < endsAt; );
}

async function sliced(sender: string | undefined, steps: number): Promise<void> {
  const nextStep = openSlices(sender);
  for (let step = 0; step < steps; step += 1) {
    await nextStep();
    busy(2);
  }
}

test("SEC-5 between two slices one piece of somebody's heavy work is done at most, and nobody rests", async () => {
  let pieces = 0;
  let isOver = false;
  const heavy = async () => {
    while (!isOver) {
      await ownTurn({ sender: "mallory" });
      if (isOver) return;
      pieces += 1;
      busy(30);
    }
  };
  const mallorys = Promise.all([heavy(), heavy()]);
  await sliced(undefined, 50); // 100 ms, in some 17 slices
  isOver = true;
  await mallorys;
  expect(pieces).toBeLessThan(9);
});

test("SEC-5 what a service does by itself for one provider keeps what it does for another waiting for a slice of it", async () => {
  const ended: string[] = [];
  const work = (provider: string) => sliced(provider, 12).then(() => ended.push(provider));
  await Promise.all([...Array.from({ length: 10 }, () => work("mallory")), work("alice")]);
  expect(ended[0]).toBe("alice");
});

test("SEC-5 what has been idle goes on at once, whoever else does too", async () => {
  const steps = Array.from({ length: 20 }, (_, sender) => openSlices(`${sender}`));
  await Promise.all(steps.map((nextStep) => nextStep()));
  await delay(10);
  let begun = 0;
  for (const nextStep of steps) void nextStep().then(() => (begun += 1));
  await nextTurn();
  expect(begun).toBe(20);
});

test.each([
  ["goes on at once in a turn of the event loop takes 20 ms of it together", (n: number) => `${n}`, 10],
  ["one sender has takes a slice or two of a turn, in however many streams", () => "mallory", 5],
])("SEC-5 all that %s", async (_, senderOf, most) => {
  const steps = Array.from({ length: 40 }, (_, n) => openSlices(senderOf(n)));
  await nextTurn();
  const turnEnds = nextTurn();
  let begun = 0;
  for (const nextStep of steps) {
    const works = nextStep().then(() => {
      begun += 1;
      busy(4);
    });
    await Promise.race([works, undefined]); // as chunks of several sockets come, one after the other, in the same turn
  }
  await turnEnds;
  expect(begun).toBeLessThan(most);
  await until(() => begun === 40); // the others have their turns
});

test("SEC-5 steps of one sender that wait go on in one slice, one after the other, each stream in its turn", async () => {
  const order: number[] = [];
  const stepsOf = async (stream: number, nextStep = openSlices("mallory")) => {
    for (let n = 0; n < 5; n += 1) {
      await nextStep();
      order.push(stream);
      busy(n === 0 ? 0.5 : 0.01);
    }
  };
  let isOver = false;
  const all = Promise.all(Array.from({ length: 40 }, (_, stream) => stepsOf(stream))).then(() => {
    isOver = true;
  });
  let turns = 0;
  for (; !isOver; turns += 1) await nextTurn();
  await all;
  expect(turns).toBeLessThan(30);
  expect(order.lastIndexOf(0)).toBeGreaterThan(order.indexOf(39)); // no stream has all of its steps before another's first
});
