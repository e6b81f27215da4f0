import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { Starts } from "../connection/starts.ts";
import type { OpeningEvents } from "../link/link-keeper.ts";
import { serverFrom } from "./connection.ts";

const server = serverFrom({ name: "files", command: "npx", args: ["files"] });
const events = { onWords: () => {} } as unknown as OpeningEvents;
const time = { ms: 60_000, installer: "npx" };

/** Starts that are ready when the test says so, and whose links take as long to close. */
function openStarts() {
  const begun: (Pick<OpeningEvents, "isUnclaimed"> & { ready(): void; closed(): void; over: AbortSignal })[] = [];
  const starts = new Starts();
  const open = starts.opener(server, ({ isUnclaimed }, _, over) => {
    const ready = Promise.withResolvers<never>();
    const closed = Promise.withResolvers<void>();
    over.addEventListener("abort", () => ready.reject(over.reason));
    const link = { number: begun.length, [Symbol.asyncDispose]: () => closed.promise };
    begun.push({
      ready: () => ready.resolve({ link } as never),
      closed: closed.resolve,
      over,
      ...(isUnclaimed && { isUnclaimed }),
    });
    return ready.promise;
  });
  return { starts, begun, take: (signal: AbortSignal) => open(events, time, signal, []) };
}

test("ORCH-6 a start that is being closed, since nobody has taken it over, is taken over by nobody", async () => {
  const { begun, take } = openStarts();
  const first = new AbortController();
  const left = take(first.signal).catch(() => {});
  first.abort(new Error("the session ended"));
  await left;
  begun[0]?.ready();
  await setImmediate();
  const next = take(new AbortController().signal);
  begun[0]?.closed();
  await setImmediate();
  begun[1]?.ready();
  expect(await Promise.race([next, setImmediate()])).toMatchObject({ link: { number: 1 } });
});

test("ORCH-6 a start that is left, and waits for its turn, is told that nobody wants it unless it is taken over", async () => {
  const { begun, take } = openStarts();
  const first = new AbortController();
  const left = take(first.signal).catch(() => {});
  expect(begun[0]?.isUnclaimed?.()).toBe(false);
  first.abort(new Error("the session ended"));
  await left;
  expect(begun[0]?.isUnclaimed?.()).toBe(true);
  const next = take(new AbortController().signal);
  expect(begun[0]?.isUnclaimed?.()).toBe(false);
  begun[0]?.ready();
  expect(await next).toMatchObject({ link: { number: 0 } });
});

test("ORCH-6 a start that was ended with its server is taken over by nobody", async () => {
  const { starts, begun, take } = openStarts();
  const first = new AbortController();
  const left = take(first.signal).catch(() => {});
  first.abort(new Error("the session ended"));
  await left;
  starts.end(server);
  const next = take(new AbortController().signal);
  await setImmediate();
  begun[1]?.ready();
  expect(await next).toMatchObject({ link: { number: 1 } });
});
