import { expect, test } from "vitest";
import { type Feed, Feeds } from "./feeds.ts";

test("SEC-5 one reader of many that has stopped holds 4 MiB, and the others get everything", async () => {
  const feeds = new Feeds<number>();
  const { signal } = new AbortController();
  let feed: Feed<number> | undefined;
  const join = () =>
    feeds.join("run", signal, (opened) => {
      feed = opened;
      return { [Symbol.dispose]() {} };
    });
  const [stopped, ...others] = Array.from({ length: 100 }, join);
  for (let n = 0; n < 4; n += 1) feed?.push(n, 1_024 * 1_024);
  expect(await stopped?.next()).toBe(0);
  for (let n = 0; n < 4; n += 1) for (const other of others) expect(await other.next()).toBe(n);
  for (let n = 4; n < 6; n += 1) {
    feed?.push(n, 1_024 * 1_024);
    for (const other of others) expect(await other.next()).toBe(n);
  }
  expect(await stopped?.next()).toBeUndefined();
  feed?.push(6, 1);
  expect(await stopped?.next()).toBe(6);
});
