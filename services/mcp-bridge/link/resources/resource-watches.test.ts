import { expect, test } from "vitest";
import { ResourceWatches } from "./resource-watches.ts";

test("SEC-6 WATCH-4 what one principal watches at a shared server leaves room for others", async () => {
  const watches = new ResourceWatches("files");
  const leaving = new AbortController();
  const first = (uri: string, principal: string) => watches.watch(uri, principal, leaving.signal).next();
  watches.linked({ tellOf: async () => new Map() });
  const own = await Promise.all(Array.from({ length: 200 }, (_, index) => first(`file:///${index}`, "ada")));
  expect(new Set(own.map(({ value }) => value))).toEqual(new Set(["watched"]));

  await expect(first("file:///one-more", "ada")).rejects.toMatchObject({ reason: "SHARE_EXCEEDED" });
  await expect(first("file:///0", "ada"), "of what is watched already").resolves.toMatchObject({ value: "watched" });
  await expect(first("file:///one-more", "bob")).resolves.toMatchObject({ value: "watched" });
  leaving.abort();
  watches.close();
});
