import fc from "fast-check";
import { expect, test } from "vitest";
import { firstKeys } from "./first-keys.ts";

test("the first keys behind a place are those of the sorted whole", async () => {
  const key = fc.string({ minLength: 1, maxLength: 3 });
  const keys = fc.uniqueArray(key, { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(keys, key, fc.integer({ min: 1, max: 9 }), async (all, after, limit) => {
      const where = (length: number) => length < 3;
      const wanted = all.filter((one) => one > after && where(one.length)).sort();
      const entries = new Map(all.map((one) => [one, one.length]));
      expect(await firstKeys(entries, { where, after, limit })).toEqual(wanted.slice(0, limit));
    }),
  );
});
