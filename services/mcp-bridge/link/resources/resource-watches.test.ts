import { expect, test, vi } from "vitest";
import { ResourceWatches } from "./resource-watches.ts";

test("SEC-6 WATCH-4 a resource that nobody watches any more leaves its room, whoever watched it last", async () => {
  vi.useFakeTimers();
  const watches = new ResourceWatches("files");
  watches.linked({ tellOf: async () => new Map() });
  const watch = async (uri: string, principal: string) => {
    const leaving = new AbortController();
    const watching = watches.watch(uri, principal, leaving.signal);
    await watching.next();
    return async () => {
      leaving.abort();
      await watching.next().catch(() => {});
    };
  };
  for (let round = 0; round < 3; round += 1) {
    const uris = Array.from({ length: 200 }, (_, index) => `file:///${round}/${index}`);
    const hers = await Promise.all(uris.map((uri) => watch(uri, "ada")));
    const his = await watch(uris[0]!, "bob");
    await expect(watch("file:///more", "ada")).rejects.toMatchObject({ reason: "SHARE_EXCEEDED" });
    for (const leave of [...hers, his]) await leave();
    vi.advanceTimersByTime(60_000);
  }
  watches.close();
  vi.useRealTimers();
});

test("SEC-6 WATCH-4 a watch costs no look at what else is watched", async () => {
  const watches = new ResourceWatches("files");
  const leaving = new AbortController();
  const iterated = vi.spyOn(Map.prototype, "values");
  for (let index = 0; index < 100; index += 1)
    void watches
      .watch(`file:///${index}`, "ada", leaving.signal)
      .next()
      .catch(() => {});
  expect(iterated).not.toHaveBeenCalled();
  iterated.mockRestore();
  leaving.abort();
  watches.close();
});

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
