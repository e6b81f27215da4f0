import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { byte, firstBytes, openStreams } from "../testing/echo-streams.ts";
import { type EchoWorld, openEchoWorld } from "../testing/echo-world.ts";

let world: EchoWorld;

beforeAll(async () => {
  world = await openEchoWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

test("SEC-5 what a service streams to one principal gives way to what else it has to do", async () => {
  let [made, most] = [0, 0];
  await using streams = await openStreams(world, {
    async *serverStream() {
      for (let n = 0; n < 30; n += 1) {
        for (const endsAt = performance.now() + 1; performance.now() < endsAt; );
        made += 1;
        yield byte(n);
      }
    },
  });
  const all = Promise.all(Array.from({ length: 20 }, () => firstBytes(streams.client.serverStream({}))));
  const isOver = all.then(() => true);
  for (let before = 0; !(await Promise.race([isOver, nextTurn(false)])); before = made)
    most = Math.max(most, made - before);
  expect(most).toBeLessThan(100);
  expect(made).toBe(600);
});
