import { expect, test } from "vitest";
import { createChanges, looksAt } from "./changes.ts";

test("a change that comes while one looks is looked at, too; the signal ends the looking, and nobody listens then", async () => {
  const changes = createChanges();
  const ending = new AbortController();
  let looks = 0;
  const looking = (async () => {
    for await (const _ of looksAt(changes, ending.signal)) {
      looks += 1;
      if (looks === 1) changes.tell();
      else ending.abort(new Error("enough"));
    }
  })();
  await expect(looking).rejects.toThrow("enough");
  expect(looks).toBe(2);
  expect(changes.isFollowed).toBe(false);
});

test("who leaves in the middle of a look listens no longer", async () => {
  const changes = createChanges();
  for await (const _ of looksAt(changes, new AbortController().signal)) break;
  expect(changes.isFollowed).toBe(false);
});
