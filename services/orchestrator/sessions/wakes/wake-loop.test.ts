import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { SessionWakeSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { Slots } from "./slots.ts";
import type { Wake, WakeQueue } from "./wake.ts";
import { runWakeLoop } from "./wake-loop.ts";

const logger = { warn: () => {}, error: () => {} };
const nothing = () => {};

test("LOOP-13 no wake-up is fetched that no slot is free for, and the more come the more are asked for together", async () => {
  const stopping = new AbortController();
  const asked: number[] = [];
  let waiting = 0;
  const queue: Pick<WakeQueue, "next"> = {
    async *next(atMost) {
      asked.push(atMost);
      if (waiting === 0) await until(() => waiting > 0 || stopping.signal.aborted);
      for (let came = 0; came < atMost && waiting > 0; came += 1) {
        waiting -= 1;
        yield {
          message: create(SessionWakeSchema),
          id: 0,
          ageMs: 0,
          deliveryCount: 1,
          done: nothing,
          later: nothing,
          leave: nothing,
        };
      }
    },
  };
  let mostAtWork = 0;
  const atWork: (() => void)[] = [];
  const work = async (_: Wake) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    mostAtWork = Math.max(mostAtWork, atWork.push(resolve));
    await promise;
  };
  const ended = runWakeLoop(
    { queue: { ...queue, send: async () => {} }, slots: new Slots(24), work, clock: systemClock, logger },
    stopping.signal,
  );
  await until(() => asked.length === 1);
  waiting = 100;
  await until(() => atWork.length === 24);
  expect(asked).toEqual([1, 2, 4, 8, 9]);
  for (const finish of atWork.splice(0)) finish();
  await until(() => atWork.length === 24);
  expect(mostAtWork).toBe(24);
  stopping.abort();
  waiting = 0;
  for (const finish of atWork.splice(0)) finish();
  await ended;
});

test("LOOP-17 no wake-up is asked for where a slot that was lent comes back as another one becomes free", async () => {
  const stopping = new AbortController();
  const asked: number[] = [];
  const ends: (() => void)[] = [];
  const slots = new Slots(1);
  const queue: WakeQueue = {
    async *next(atMost) {
      asked.push(atMost);
      if (asked.length > 2) await until(() => stopping.signal.aborted);
      else
        yield {
          message: create(SessionWakeSchema),
          id: 0,
          ageMs: 0,
          deliveryCount: 1,
          done: nothing,
          later: nothing,
          leave: nothing,
        };
    },
    send: async () => {},
  };
  const work = () => new Promise<void>((resolve) => void ends.push(resolve));
  const ended = runWakeLoop({ queue, slots, work, clock: systemClock, logger }, stopping.signal);
  await until(() => ends.length === 1);
  const lent = slots.lend("a");
  await until(() => ends.length === 2);
  lent[Symbol.dispose]();
  expect(slots.free, "two are at work").toBe(-1);
  ends.shift()?.();
  await until(() => slots.free === 0);
  const again = slots.lend("a");
  again[Symbol.dispose](); // free for the moment in which the loop is told
  ends.shift()?.();
  await until(() => asked.length === 3);
  expect(asked).toEqual([1, 1, 1]);
  stopping.abort();
  await ended;
});
