import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Bus } from "#runtime/bus/bus.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus, type TestBus } from "../../../../test/harness/bus.ts";
import { openRouters } from "./routers.ts";

let bus: TestBus;
beforeAll(async () => {
  bus = await openTestBus();
});
afterAll(() => bus[Symbol.asyncDispose]());

/** One of the routers; it says that it has left the session as soon as that is so. */
async function openRouter(name: string, hasLeft: () => boolean) {
  const routers = await openRouters(bus as Bus, name, (sessionId, revision) => {
    if (hasLeft()) routers.announceDrained(sessionId, revision);
  });
  onTestFinished(() => routers[Symbol.asyncDispose]());
  return routers;
}

function countMessages(subject: string) {
  let count = 0;
  const subscription = bus.connection.subscribe(subject, {
    callback: () => {
      count += 1;
    },
  });
  onTestFinished(() => subscription.unsubscribe());
  return () => count;
}

test("ORCH-1 who waits for the last router to leave a session asks now and then, however quick the others answer", async () => {
  let hasCalls = true;
  const [one] = [await openRouter("one", () => true), await openRouter("two", () => true)];
  await openRouter("three", () => !hasCalls);
  const asked = countMessages("toolbus.session.who_left");
  const { signal } = new AbortController();
  const left = one.allDrained("session", 1, { ms: 30_000, signal });
  const begunAtMs = performance.now();
  await until(() => performance.now() - begunAtMs > 1_000 && asked() > 2, { timeoutMs: 20_000 });
  const [askedSoFar, passedMs] = [asked(), performance.now() - begunAtMs];
  hasCalls = false;
  expect(await left).toBe(true);
  expect(askedSoFar).toBeLessThanOrEqual(3 + passedMs / 250);
});
