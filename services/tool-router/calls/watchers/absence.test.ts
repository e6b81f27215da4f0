import { expect, test } from "vitest";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { MemoryPresence } from "../../testing/fakes/memory-watchers.ts";
import { createAbsence } from "./absence.ts";

function open() {
  const clock = createManualClock();
  const stopping = new AbortController();
  const presence = new MemoryPresence();
  let asked = 0;
  const isWatched = (tool: string) => {
    asked += 1;
    return presence.isWatched(tool);
  };
  const show = (tool: string, watcher: string) =>
    presence.show({ token: watcher, principal: "scales", tools: [tool] }, () => {});
  const { follow } = createAbsence(
    { isWatched, isWatchedBy: async () => false, isWatching: presence.isWatching, show: () => show("", "") },
    clock,
    { stopping: stopping.signal, onFault: () => {} },
  );
  return { clock, presence, follow, asked: () => asked, stopping };
}

test("TOOL-6 a tool that nobody watches is said to be unwatched after the grace, to each call after its own", async () => {
  const { clock, follow } = open();
  const told: string[] = [];
  const ends = [follow("weigh", () => told.push("first"))];
  await clock.advance(1_000);
  ends.push(follow("weigh", () => told.push("second")));
  await clock.advance(1_500);
  expect(told).toEqual(["first"]);
  await clock.advance(1_000);
  expect(told).toEqual(["first", "second"]);
  for (const end of ends) end();
  await clock.advance(10_000);
  expect(clock.sleeping).toBe(0);
});

test("TOOL-6 a watcher that comes within the grace ends it, and one that goes begins another", async () => {
  const { clock, presence, follow } = open();
  let told = 0;
  const end = follow("weigh", () => told++);
  await clock.advance(1_900);
  const watching = presence.show({ token: "w", principal: "scales", tools: ["weigh"] }, () => {});
  await clock.advance(5_000);
  expect(told).toBe(0);
  watching[Symbol.dispose]();
  await clock.advance(1_900);
  expect(told).toBe(0);
  await clock.advance(600);
  expect(told).toBe(1);
  end();
});

test("TOOL-6 a router that stops says of nobody that it is absent: watchers leave with their suite, and come back", async () => {
  const { clock, follow, stopping } = open();
  let told = 0;
  const end = follow("weigh", () => told++);
  await clock.advance(1_900);
  stopping.abort();
  await clock.advance(10_000);
  expect(told).toBe(0);
  end();
});

test("however many calls wait, one question is asked at a time; a call that is answered at once asks nothing", async () => {
  const { clock, follow, asked } = open();
  for (let n = 0; n < 100; n++) follow("quick", () => {})();
  expect(asked()).toBe(0);
  const ends = Array.from({ length: 100 }, () => follow("slow", () => {}));
  await clock.advance(1_000);
  expect(asked()).toBe(4);
  for (const end of ends) end();
});
