import { expect, test } from "vitest";
import { delay } from "../time/delay.ts";
import { KeyedListeners } from "./keyed-listeners.ts";

const { signal } = new AbortController();

test("a change while it is read is not missed, and listeners of other keys hear nothing", async () => {
  const listeners = new KeyedListeners();
  let reads = 0;
  const found = listeners.until(
    "a",
    async () => {
      reads += 1;
      if (reads === 1) listeners.notify("a");
      return reads === 2 ? "there" : undefined;
    },
    signal,
  );
  expect(await found).toBe("there");
  expect(listeners.has("a")).toBe(false);
});

test("who waits ends with the signal's reason, and listens no longer", async () => {
  const listeners = new KeyedListeners<[number]>();
  const heard: number[] = [];
  using _ = listeners.add("b", (number) => void heard.push(number));
  const ending = new AbortController();
  const waiting = listeners.until("a", async () => undefined, ending.signal);
  await delay(1);
  listeners.notify("b", 1);
  listeners.notifyAll(2);
  ending.abort(new Error("no longer"));
  await expect(waiting).rejects.toThrow("no longer");
  expect([heard, listeners.has("a"), listeners.has("b")]).toEqual([[1, 2], false, true]);
});
