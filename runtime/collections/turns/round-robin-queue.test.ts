import { expect, test } from "vitest";
import { RoundRobinQueue } from "./round-robin-queue.ts";

test("SEC-5 each key has one piece of work under way, and who comes later has the next turn", async () => {
  const queue = new RoundRobinQueue(2);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const put = (key: string, name: string) =>
    queue.run(key, async () => {
      begun.push(name);
      const { promise, resolve } = Promise.withResolvers<void>();
      ends.set(name, resolve);
      await promise;
      return name;
    });
  const all = [put("a", "a1"), put("a", "a2"), put("a", "a3"), put("b", "b1"), put("c", "c1")];
  const end = async (name: string, position: number) => {
    ends.get(name)!();
    await all[position];
    await Promise.resolve();
  };
  await Promise.resolve();
  expect(begun).toEqual(["a1", "b1"]);
  await end("b1", 3);
  expect(begun).toEqual(["a1", "b1", "c1"]);
  await end("a1", 0);
  expect(begun).toEqual(["a1", "b1", "c1", "a2"]);
  await end("c1", 4);
  expect(begun).toHaveLength(4); // a has one under way
  await end("a2", 1);
  await end("a3", 2);
  expect(await Promise.all(all)).toEqual(["a1", "a2", "a3", "b1", "c1"]);
});

test("SEC-6 a key that may have several pieces under way keeps no other waiting", async () => {
  const queue = new RoundRobinQueue(4, 2);
  const begun: string[] = [];
  const end = Promise.withResolvers<void>();
  const put = (key: string) =>
    queue.run(key, () => {
      begun.push(key);
      return end.promise;
    });
  const all = ["a", "a", "a", "b", "c", "c"].map(put);
  await Promise.resolve();
  expect(begun).toEqual(["a", "a", "b", "c"]);
  end.resolve();
  await Promise.all(all);
  expect(begun.toSorted().join("")).toBe("aaabcc");
});

test("SEC-5 what fails gives way to the next", async () => {
  const queue = new RoundRobinQueue(1);
  const failing = queue.run("a", () => Promise.reject(new Error("no")));
  const next = queue.run("a", async () => 1);
  await expect(failing).rejects.toThrow("no");
  expect(await next).toBe(1);
  expect(await queue.run("a", async () => 2)).toBe(2);
});

test("SEC-5 who does not want his turn any more leaves the queue, and it goes on without him", async () => {
  const queue = new RoundRobinQueue(1);
  const running = Promise.withResolvers<void>();
  const done: string[] = [];
  const put = (key: string, signal?: AbortSignal) => queue.run(key, async () => void done.push(key), signal);
  const first = queue.run("a", () => running.promise);
  const leaving = new AbortController();
  const left = [put("b", leaving.signal), put("b"), put("c", leaving.signal), put("d")];
  const whyLeft = new Error("gone");
  leaving.abort(whyLeft);
  running.resolve();
  const settled = await Promise.allSettled(left);
  expect(settled.map((one) => one.status === "rejected" && one.reason)).toEqual([whyLeft, false, whyLeft, false]);
  await first;
  expect(done).toEqual(["b", "d"]);
  await expect(put("e", leaving.signal)).rejects.toBe(whyLeft);
});

test("SEC-5 work that has begun is not ended by the signal of its waiting", async () => {
  const queue = new RoundRobinQueue(1);
  const leaving = new AbortController();
  const work = Promise.withResolvers<string>();
  const running = queue.run("a", () => work.promise, leaving.signal);
  leaving.abort();
  work.resolve("done");
  expect(await running).toBe("done");
});
