import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { type Caller, callerNamed, SELF } from "#runtime/rpc/identity.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { type LiveUpdate, watchRun } from "./watch.ts";
import type { WatchRequest } from "./watch-view.ts";

type Body = NonNullable<MessageInitShape<typeof RunEventSchema>["event"]>;

const turn = (number: number, attempt: number, text: string): Body => ({
  case: "turnCommitted",
  value: { turn: number, attempt, items: [{ item: { case: "message", value: { content: textContent(text) } } }] },
});
const claimed: Body = { case: "claimed", value: {} };
const ended: Body = { case: "ended", value: {} };

function delta(place: { turn: number; attempt: number; index: number }, text: string): LiveUpdate {
  const value = { ...place, delta: { case: "text" as const, value: text } };
  return { update: create(WatchRunResponseSchema, { update: { case: "delta", value } }) };
}

/** What a watcher is shown of a log, then of deltas, then of what the log has got meanwhile. */
async function shown(
  stored: { before: Body[]; after: Body[] },
  deltas: LiveUpdate[],
  request: Partial<WatchRequest>,
): Promise<string[]> {
  const log = createMemoryRunLog();
  let position = 0;
  let sequence = 0;
  const write = async (bodies: Body[]) => {
    for (const event of bodies) {
      const stored = create(RunEventSchema, { runId: "r", sequence, event });
      const appended = await log.append({ event: stored, epoch: 0, instance: "" }, position);
      if (appended.kind === "appended") position = appended.position;
      sequence += 1;
    }
  };
  await write(stored.before);
  const next = async () => {
    const update = deltas.shift();
    if (update === undefined) await write(stored.after.splice(0));
    return update;
  };
  const live = { subscribe: async () => ({ next, [Symbol.dispose]: () => {} }) };
  const options = { log, live, requestSnapshot: () => {} };
  const full = { runId: "r", fromSequence: 0n, includeDeltas: true, cursor: undefined, caller: SELF, ...request };
  const updates = await Array.fromAsync(watchRun(options, full, new AbortController().signal));
  return updates.map(({ update }) => {
    if (update.case === "event") return `${update.value.sequence} ${update.value.event.case}`;
    if (update.case === "start") return `start ${update.value.nextSequence}`;
    if (update.case === "gap") return `gap ${update.value.firstSequence}-${update.value.lastSequence}`;
    return update.case === "replaced" ? `reset ${update.value.text}` : `delta ${update.value?.delta.value}`;
  });
}

describe("a watcher that comes back", () => {
  const before = [{ case: "accepted" as const, value: {} }, claimed, turn(1, 1, "one"), claimed];

  test("LOOP-10 in mid-turn is reset when another attempt has begun, also after turns that it saw whole", async () => {
    const after = [turn(2, 129, "anew"), ended];
    const seen = { fromSequence: 3n, cursor: { turn: 2, attempt: 1, next: 4 } };
    expect(await shown({ before, after }, [delta({ turn: 2, attempt: 129, index: 0 }, "anew")], seen)).toEqual([
      "3 claimed",
      "reset ",
      "delta anew",
      "4 turnCommitted",
      "5 ended",
    ]);
  });

  test("LOOP-10 in mid-turn goes on where it stood when the attempt still goes on", async () => {
    const after = [turn(2, 1, "on and on"), ended];
    const seen = { fromSequence: 4n, cursor: { turn: 2, attempt: 1, next: 1 } };
    const deltas = [
      delta({ turn: 2, attempt: 1, index: 0 }, "on"),
      delta({ turn: 2, attempt: 1, index: 1 }, " and on"),
    ];
    expect(await shown({ before, after }, deltas, seen)).toEqual(["delta  and on", "4 turnCommitted", "5 ended"]);
  });

  test("LOOP-10 is not reset for a turn whose commit it has seen", async () => {
    const later = [...before.slice(0, 2), turn(1, 129, "one"), claimed];
    const seen = { fromSequence: 3n, cursor: { turn: 1, attempt: 1, next: 4 } };
    expect(await shown({ before: later, after: [ended] }, [], seen)).toEqual(["3 claimed", "4 ended"]);
  });

  const checkpoint = (attempt: number, deltas: number, text: string, firstDelta = 0): Body => ({
    case: "textCheckpoint",
    value: { turn: 2, attempt, deltaCount: deltas, text, firstDelta },
  });

  test("LOOP-10 in mid-turn, or anew, gets the text that the log has, and the next delta joins it", async () => {
    const drafted = [...before, checkpoint(1, 2, "so far"), checkpoint(1, 3, " so good", 2)];
    const after = [turn(2, 1, "so far so good, on"), ended];
    const next = [
      delta({ turn: 2, attempt: 1, index: 2 }, " so good"),
      delta({ turn: 2, attempt: 1, index: 3 }, ", on"),
    ];
    const rest = ["reset so far so good", "delta , on", "6 turnCommitted", "7 ended"];
    expect(await shown({ before: drafted, after: [...after] }, [...next], { fromSequence: 6n })).toEqual(rest);
    const behind = { fromSequence: 6n, cursor: { turn: 2, attempt: 1, next: 1 } };
    expect(await shown({ before: drafted, after: [...after] }, [...next], behind)).toEqual(rest);
    const ahead = { fromSequence: 6n, cursor: { turn: 2, attempt: 1, next: 3 } };
    expect(await shown({ before: drafted, after: [...after] }, [...next], ahead)).toEqual(rest.slice(1));
    expect(await shown({ before: drafted, after: [...after] }, [...next], { fromSequence: 5n })).toEqual([
      "5 textCheckpoint",
      ...rest,
    ]);
  });

  test("LOOP-10 is not told the text of an attempt that a later claim or a commit has put an end to", async () => {
    const drafted = [...before, checkpoint(1, 2, "so far"), claimed];
    const after = [turn(2, 257, "anew"), ended];
    expect(await shown({ before: drafted, after: [...after] }, [], { fromSequence: 6n })).toEqual([
      "6 turnCommitted",
      "7 ended",
    ]);
    const seen = { fromSequence: 6n, cursor: { turn: 2, attempt: 1, next: 2 } };
    expect(await shown({ before: drafted, after: [...after] }, [], seen)).toEqual([
      "reset anew",
      "6 turnCommitted",
      "7 ended",
    ]);
  });

  test("LOOP-10 is told what the record has of a turn in the middle of which the run ended", async () => {
    const seen = { fromSequence: 5n, cursor: { turn: 2, attempt: 1, next: 4 } };
    const drafted = [...before, checkpoint(1, 2, "so far")];
    expect(await shown({ before: drafted, after: [ended] }, [], seen)).toEqual(["reset so far", "5 ended"]);
    const undrafted = { before, after: [ended] };
    expect(await shown(undrafted, [delta({ turn: 2, attempt: 1, index: 0 }, "so")], { fromSequence: 4n })).toEqual([
      "delta so",
      "reset ",
      "4 ended",
    ]);
  });

  test.each([5n, 99n])(
    "LOOP-10 from event %s, behind the end of an ended run, is refused and told how far it came",
    async (fromSequence) => {
      const over = [...before.slice(0, 3), ended];
      const behind = { runId: "r", fromSequence };
      await expect(shown({ before: over, after: [] }, [], behind)).rejects.toMatchObject({
        code: "out_of_range",
        reason: "SEQUENCE_NOT_REACHED",
        message: `run r has no event ${fromSequence}: the next one is 4`,
      });
      expect(await shown({ before: over, after: [] }, [], { fromSequence: 3n })).toEqual(["3 ended"]);
      expect(await shown({ before: over, after: [] }, [], { fromSequence: 4n })).toEqual([]); // it has seen all
    },
  );

  test("LOOP-10 from the next event of a run waits for it; one further on is refused, as nobody was told of it", async () => {
    const going = () => ({ before: before.slice(0, 2), after: [turn(1, 1, "one"), ended] });
    expect(await shown(going(), [], { fromSequence: 2n })).toEqual(["2 turnCommitted", "3 ended"]);
    const further = shown(going(), [], { fromSequence: 3n });
    await expect(further).rejects.toMatchObject({ code: "out_of_range", reason: "SEQUENCE_NOT_REACHED" });
  });

  test("LOOP-10 from now on is told where that is, and what follows, and nothing of a run that has ended", async () => {
    const now = { fromSequence: undefined };
    const going = { before: before.slice(0, 2), after: [turn(1, 1, "one"), ended] };
    expect(await shown(going, [], now)).toEqual(["start 2", "2 turnCommitted", "3 ended"]);
    expect(await shown({ before: [...before, ended], after: [] }, [], now)).toEqual(["start 5"]);
    const drafted = { before: [...before, checkpoint(1, 2, "so far")], after: [turn(2, 1, "so far, on"), ended] };
    const deltas = [delta({ turn: 2, attempt: 1, index: 2 }, ", on")];
    const told = ["start 5", "reset so far", "delta , on", "5 turnCommitted", "6 ended"];
    expect(await shown(drafted, deltas, now)).toEqual(told);
  });
});

test("LOOP-10 all watchers of a run are given what came live as it came, so that it is encoded for none of them", async () => {
  const log = createMemoryRunLog();
  const events = [{ case: "accepted" as const, value: {} }, claimed, turn(1, 1, "one"), ended];
  const stored = events.map((event, sequence) => create(RunEventSchema, { runId: "r", sequence, event }));
  await log.append({ event: stored[0]!, epoch: 0, instance: "" }, 0);
  const updates: LiveUpdate[] = [
    delta({ turn: 1, attempt: 1, index: 0 }, "one"),
    ...stored.map((value, index) => ({
      update: create(WatchRunResponseSchema, { update: { case: "event", value } }),
      position: index + 1,
    })),
  ];
  const told = async () => {
    const news = [...updates];
    const next = async () => news.shift();
    const subscription = { next, [Symbol.dispose]: () => {} };
    const options = { log, live: { subscribe: async () => subscription }, requestSnapshot: () => {} };
    const request = { runId: "r", fromSequence: 1n, includeDeltas: true, cursor: undefined, caller: SELF };
    return Array.fromAsync(watchRun(options, request, new AbortController().signal));
  };
  const came = updates.map(({ update }) => update).filter((_, index) => index !== 1);
  for (const given of await Promise.all([told(), told()])) {
    expect(given).toHaveLength(came.length);
    for (const [index, update] of given.entries()) expect(update).toBe(came[index]);
  }
});

test("LOOP-10 a log that has lost its beginning does not say whose it is, and is shown to nobody outside", async () => {
  const log = createMemoryRunLog();
  for (const [index, event] of [claimed, ended].entries()) {
    const stored = create(RunEventSchema, { runId: "r", sequence: index + 1, event });
    await log.append({ event: stored, epoch: 0, instance: "" }, index);
  }
  const live = {
    subscribe: async () => ({ next: async () => undefined, [Symbol.dispose]() {} }),
  };
  const watchAs = (caller: Caller) => {
    const request = { runId: "r", fromSequence: 0n, includeDeltas: false, cursor: undefined, caller };
    const options = { log, live, requestSnapshot: () => {} };
    return Array.fromAsync(watchRun(options, request, new AbortController().signal));
  };
  await expect(watchAs(callerNamed("eve"))).rejects.toMatchObject({ code: "data_loss", reason: "RECORD_LOST" });
  expect((await watchAs(SELF)).map(({ update }) => update.case)).toEqual(["gap", "event", "event"]);
});
