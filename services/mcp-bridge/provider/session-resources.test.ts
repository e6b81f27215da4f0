import { expect, test } from "vitest";
import { refuse } from "#runtime/failure/failure.ts";
import { until } from "#runtime/time/until.ts";
import { SessionResources, type SessionResourcesParts } from "./session-resources.ts";

test("DOOR-1 why a resource is not watched is told once, however often it is tried, and again when it was watched", async () => {
  let tries = 0;
  const parts = {
    sources: { find: async () => ({}) },
    provider: {
      async *watchResource() {
        tries += 1;
        if (tries === 4) yield "watched";
        refuse("permission_denied", "the agent may not use it", { reason: "TOOL_NOT_ALLOWED" });
      },
    },
    subscriptions: { changes: { listen: () => ({ [Symbol.dispose]() {} }) } },
  } as unknown as SessionResourcesParts;
  const left = new AbortController();
  const told: string[] = [];
  const watching = (async () => {
    const named = [{ source: "notes", uri: "note://one" }];
    for await (const { watched, unwatched } of new SessionResources(parts).watch("s", named, left.signal))
      told.push(...watched.map(() => "watched"), ...unwatched.map(({ reason }) => reason));
  })();
  await until(() => tries > 5);
  left.abort();
  await watching.catch(() => {});
  expect(told).toEqual(["the agent may not use it", "watched", "the agent may not use it"]);
});
