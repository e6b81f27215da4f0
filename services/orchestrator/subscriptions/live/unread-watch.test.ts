import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { SELF } from "#runtime/rpc/identity.ts";
import type { EventBody } from "../../log/journal.ts";
import { watchRun } from "../../runs/watch/watch.ts";
import { openLiveBus } from "../../testing/fakes/live-bus.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createLiveUpdates } from "./live-updates.ts";

const { signal } = new AbortController();
const watching = 60;
const turns = 300;
const deltasOfTurn = 20;

/** A run that is told of, and watchers that have read its first event and nothing since. */
async function openUnread() {
  const { bus, tell, tellEvent } = openLiveBus();
  const log = createMemoryRunLog();
  const counts = { reads: 0, asked: 0 };
  const read: typeof log.read = async (...query) => {
    counts.reads += 1;
    return log.read(...query);
  };
  let position = 0;
  const write = async (event: EventBody) => {
    const stored = create(RunEventSchema, { runId: "r", sequence: position, event });
    await log.append({ event: stored, epoch: 0, instance: "" }, position);
    position += 1;
    tellEvent(stored, position);
  };
  await write({ case: "accepted", value: {} });
  const requestSnapshot = () => {
    counts.asked += 1;
  };
  const options = { log: { ...log, read }, live: createLiveUpdates(bus), requestSnapshot };
  const request = { runId: "r", fromSequence: 0n, includeDeltas: true, cursor: undefined, caller: SELF };
  const watchers = Array.from({ length: watching }, () => watchRun(options, request, signal));
  for (const watcher of watchers) await watcher.next();
  return { tell, write, watchers, counts };
}

test("LOOP-10 60 watchers that do not read cost nothing while the run goes on, and then get its events from the log", async () => {
  const { tell, write, watchers, counts } = await openUnread();
  await write({ case: "claimed", value: {} });
  for (let turn = 1; turn <= turns; turn += 1) {
    for (let n = 0; n < deltasOfTurn; n += 1) tell(n, "x".repeat(20), turn);
    const items = [{ item: { case: "message" as const, value: { content: textContent("said") } } }];
    await write({ case: "turnCommitted", value: { turn, attempt: 1, items } });
  }
  expect(counts, "nobody does anything for them").toEqual({ reads: watching, asked: 0 });
  await write({ case: "ended", value: {} });
  const told = await Promise.all(watchers.map((watcher) => Array.fromAsync(watcher)));
  const [first = []] = told;
  const sequences = first.flatMap(({ update }) => (update.case === "event" ? [update.value.sequence] : []));
  expect(sequences, "every event but the one that was read").toEqual(
    Array.from({ length: turns + 2 }, (_, n) => n + 1),
  );
  expect(
    first.filter(({ update }) => update.case === "delta"),
    "and no words that were long committed",
  ).toEqual([]);
  for (const updates of told) expect(updates).toEqual(first);
  expect(counts.reads, "each read the log when it joined, and once for all that it missed").toBe(2 * watching);
});

test("LOOP-10 a watcher that reads again in mid-turn asks for the text so far, once", async () => {
  const { tell, write, watchers, counts } = await openUnread();
  await write({ case: "claimed", value: {} });
  for (let n = 0; n < 3_000; n += 1) tell(n);
  const [watcher] = watchers;
  expect((await watcher?.next())?.value?.update).toMatchObject({ case: "event", value: { sequence: 1 } });
  const next = watcher?.next();
  await expect.poll(() => counts.asked).toBe(1);
  await write({ case: "ended", value: {} });
  expect((await next)?.value?.update).toMatchObject({ case: "event", value: { sequence: 2 } });
});
