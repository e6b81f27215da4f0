import { pino } from "pino";
import { expect, test } from "vitest";
import { LinkKeeper } from "../../link/link-keeper.ts";
import type { Link } from "../../link/opening/link.ts";
import { ResourceWatches } from "../../link/resources/resource-watches.ts";
import { serverFrom } from "../../testing/connection.ts";

test("calls that need a login wait for it once, however many there are", async () => {
  const never = new Promise<never>(() => {});
  const link = { about: { instructions: "" }, ended: never, async [Symbol.asyncDispose]() {} };
  const nobody = () => Promise.reject(new Error("nobody asks"));
  let grant = Promise.withResolvers<void>();
  let waiting = 0;
  await using keeper = new LinkKeeper({
    server: serverFrom({ name: "notes", url: "https://notes.example/mcp" }),
    startTime: { ms: 5_000 },
    logger: pino({ level: "silent" }),
    redact: (text) => text,
    open: async () => ({
      link: link as unknown as Link,
      listed: { tools: [], taskTools: new Set(), warnings: [] },
    }),
    onChange: () => {},
    watches: new ResourceWatches("notes"),
    granted: () => {
      waiting += 1;
      return grant.promise;
    },
    isBusy: () => false,
    ...{ onLog: () => {}, onElicit: nobody, onSample: nobody },
  });
  const ready = await keeper.whenReady(new AbortController().signal);
  const refuse = () => keeper.leave(ready, { kind: "login", text: "it asks for a token" });
  for (let call = 0; call < 100; call++) refuse();
  expect(waiting).toBe(1);
  const told = keeper.standing.changes.next().happened;
  grant.resolve();
  await told;
  grant = Promise.withResolvers();
  refuse();
  expect(waiting).toBe(2);
});
