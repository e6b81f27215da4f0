import { describe, expect, test } from "vitest";
import type { LiveSubscription } from "../../runs/watch/watch.ts";
import { openLiveBus } from "../../testing/fakes/live-bus.ts";
import { createLiveUpdates } from "./live-updates.ts";

const { signal } = new AbortController();

async function next(subscription: LiveSubscription): Promise<number | undefined> {
  const update = (await subscription.next())?.update.update;
  return update?.case === "delta" ? update.value.index : undefined;
}

describe("LOOP-10 a watcher that falls behind", () => {
  test("keeps nobody waiting and holds little: it is told that it missed something, and goes on", async () => {
    const { bus, tell } = openLiveBus();
    using subscription = await createLiveUpdates(bus).subscribe("r", signal);
    for (let n = 0; n < 10_000; n += 1) tell(n); // nobody reads: each is taken at once all the same
    expect(await next(subscription)).toBeUndefined();
    tell(10_000);
    expect(await next(subscription), "nothing was held from before").toBe(10_000);
  });

  test("is told so the sooner, the larger the messages are; one by itself may be as large as the bus takes", async () => {
    const { bus, tell } = openLiveBus();
    using subscription = await createLiveUpdates(bus).subscribe("r", signal);
    const large = "x".repeat(100_000);
    tell(0, large);
    tell(1, large);
    expect([await next(subscription), await next(subscription)]).toEqual([0, 1]);
    for (let n = 2; n < 5; n += 1) tell(n, large);
    expect(await next(subscription)).toBeUndefined();
    tell(5, "x".repeat(1_000_000));
    expect(await next(subscription)).toBe(5);
  });
});

describe("LOOP-10 the watchers of a run in one process", () => {
  test("share one subscription and what it brings, and those that do not read slow none of them", async () => {
    const { bus, tell, standing, subscribed } = openLiveBus();
    const live = createLiveUpdates(bus);
    const watchers = await Promise.all(Array.from({ length: 60 }, () => live.subscribe("r", signal)));
    expect([standing(), subscribed()]).toEqual([1, 1]);
    const reader = watchers[0]!;
    for (let n = 0; n < 5_000; n += 1) {
      tell(n);
      expect(await next(reader)).toBe(n);
    }
    for (const stuck of watchers.slice(1)) expect(await next(stuck)).toBeUndefined();
    tell(5_000);
    const told = await Promise.all(watchers.map((watcher) => watcher.next()));
    const updates = told.map((news) => news?.update);
    expect(new Set(updates).size, "decoded once").toBe(1);
    for (const watcher of watchers) watcher[Symbol.dispose]();
    expect(standing()).toBe(0);
    using again = await live.subscribe("r", signal);
    tell(5_001);
    expect(await next(again)).toBe(5_001);
  });

  test("leave one by one, also while they join, and twice", async () => {
    const flushing = Promise.withResolvers<void>();
    const { bus, tell, standing } = openLiveBus(() => flushing.promise);
    const live = createLiveUpdates(bus);
    const leaving = new AbortController();
    const stays = live.subscribe("r", signal);
    const left = live.subscribe("r", leaving.signal);
    leaving.abort(new Error("left"));
    await expect(left).rejects.toThrow("left");
    flushing.resolve();
    using staying = await stays;
    const third = await live.subscribe("r", signal);
    third[Symbol.dispose]();
    third[Symbol.dispose]();
    expect(standing()).toBe(1);
    tell(1);
    expect(await next(staying)).toBe(1);
  });
});
