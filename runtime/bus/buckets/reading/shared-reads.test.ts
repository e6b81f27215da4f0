import { expect, test } from "vitest";
import { createMemoryBucket } from "../../testing/memory-bucket.ts";
import { withSharedReads } from "./shared-reads.ts";

test("who asks for a key at the same time shares its readings, and sees every write made before it asked", async () => {
  const stored = createMemoryBucket<number>();
  const keysRead: string[] = [];
  const bucket = withSharedReads({
    ...stored,
    read(key, signal) {
      keysRead.push(key);
      return stored.read(key, signal);
    },
  });
  await bucket.put("one", 1);
  const asked = Array.from({ length: 100 }, () => bucket.read("one"));
  const other = bucket.read("other");
  expect(new Set((await Promise.all(asked)).map((found) => found?.value))).toEqual(new Set([1]));
  expect(await other).toBeUndefined();
  expect(keysRead.toSorted()).toEqual(["one", "other"]);
  await bucket.put("one", 2);
  expect((await bucket.read("one"))?.value).toBe(2);
});

test("a reading with a signal is one of its own", async () => {
  const bucket = withSharedReads(createMemoryBucket<number>());
  await bucket.put("one", 1);
  expect((await bucket.read("one", new AbortController().signal))?.value).toBe(1);
});
