import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  RunDeltaSchema,
  type RunEvent,
  RunEventSchema,
  RunTextReplacedSchema,
} from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type Item, ItemSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { checkHistory } from "./check.ts";
import type { RunHistory, Seen, Watched } from "./history.ts";

type Body = NonNullable<MessageInitShape<typeof RunEventSchema>["event"]>;

const accepted: Body = { case: "accepted", value: { sessionId: "s" } };
const claimed: Body = { case: "claimed", value: {} };
const text = (value: string): Item =>
  create(ItemSchema, { item: { case: "message", value: { content: textContent(value) } } });
const call = (callId: string, name: string): Item =>
  create(ItemSchema, {
    item: { case: "functionCall", value: { callId, name, argumentsJson: `{"key":"key-${callId}"}` } },
  });
const turn = (number: number, items: Item[]): Body => ({ case: "turnCommitted", value: { turn: number, items } });
const checkpoint = (
  place: { turn: number; attempt: number; deltaCount: number; firstDelta?: number },
  text: string,
): Body => ({
  case: "textCheckpoint",
  value: { ...place, text },
});
const result = (callId: string, outputJson = '"done"'): Body => ({
  case: "callFinished",
  value: { callId, result: { outputJson, isError: outputJson.startsWith('{"error"') } },
});
const ended = (status: RunState = RunState.COMPLETED): Body => ({ case: "ended", value: { state: status } });

/** The claim under which each event of these logs was written. */
const epochByEvent = new Map<RunEvent, number>();

const log = (entries: [Body, number][]): RunEvent[] =>
  entries.map(([body, epoch], sequence) => {
    const event = create(RunEventSchema, { runId: "r", sequence, event: body });
    epochByEvent.set(event, epoch);
    return event;
  });

const goodLog = log([
  [accepted, 0],
  [claimed, 1],
  [turn(1, [text("I ask."), call("a", "once"), call("b", "again")]), 1],
  [result("a"), 1],
  [claimed, 2],
  [result("b"), 2],
  [turn(2, [text("All is done.")]), 2],
  [ended(), 2],
]);

const delta = (place: { turn: number; attempt: number; index: number }, value: string): Seen => ({
  kind: "delta",
  delta: create(RunDeltaSchema, { ...place, delta: { case: "text", value } }),
});
const toldAnew = (value: string, deltaCount = 0): Seen => ({
  kind: "replaced",
  replaced: create(RunTextReplacedSchema, { turn: 2, attempt: 129, text: value, deltaCount }),
});
const shown = (events: readonly RunEvent[]): Seen[] => events.map((event) => ({ kind: "event", event }));

const goodSeen: Seen[] = [
  ...shown(goodLog.slice(0, 6)),
  delta({ turn: 2, attempt: 1, index: 0 }, "All is well"),
  toldAnew("All is", 1),
  delta({ turn: 2, attempt: 129, index: 1 }, " done"),
  ...shown(goodLog.slice(6)),
];

function history(more: Partial<RunHistory> = {}): RunHistory {
  const events = more.events ?? goodLog;
  return {
    runId: "r",
    toldIds: ["r"],
    events,
    epochs: events.map((event) => epochByEvent.get(event) ?? 0),
    eventCountAtLast: events.length,
    effects: [
      { tool: "once", key: "key-a", idempotencyKey: "r_a", atMs: 10 },
      { tool: "again", key: "key-b", idempotencyKey: "r_b", atMs: 20 },
      { tool: "again", key: "key-b", idempotencyKey: "r_b", atMs: 30 },
    ],
    classesByTool: new Map([
      ["once", "at_most_once"],
      ["again", "idempotent"],
    ]),
    watched: more.events ? [] : [watcher({}), watcher({ fromSequence: 5, seen: shown(goodLog.slice(5)) })],
    prompts: [
      [
        { role: "user", callIds: [], answersCallId: "" },
        { role: "assistant", callIds: ["a", "b"], answersCallId: "" },
        { role: "tool", callIds: [], answersCallId: "a" },
        { role: "tool", callIds: [], answersCallId: "b" },
      ],
    ],
    acknowledged: [{ callId: "a", outputJson: '"done"' }],
    refusals: [],
    ...more,
  };
}

const watcher = (more: Partial<Watched>): Watched => ({
  name: "w",
  fromSequence: 0,
  seen: goodSeen,
  hasEnded: true,
  ...more,
});

const without = (index: number) => goodLog.filter((_, at) => at !== index);
const replaced = (index: number, body: Body, epoch = 2) =>
  log(goodLog.map((event, at) => (at === index ? [body, epoch] : [event.event as Body, epochByEvent.get(event) ?? 0])));
const canceledLog = replaced(7, ended(RunState.CANCELED));

const bad: [string, Partial<RunHistory>, string][] = [
  ["an accepted run without a log", { events: [] }, "not lost"],
  ["an accepted run without an end", { events: goodLog.slice(0, -1) }, "not lost"],
  ["two runs of one key", { toldIds: ["r", "q"] }, "one run a key"],
  ["a gap", { events: without(5) }, "contiguous"],
  ["two ends", { events: log([...pairs(goodLog), [ended(), 2]]) }, "one end"],
  ["an event after the end", { events: log([...pairs(canceledLog), [result("b"), 2]]) }, "one end"],
  ["an event after the end, later", { eventCountAtLast: 9 }, "one end"],
  ["an epoch that is claimed again", { events: replaced(4, claimed, 1) }, "epochs"],
  ["a result under a claim that is over", { events: replaced(5, result("b"), 1) }, "epochs"],
  ["a turn of nobody's claim", { events: replaced(6, turn(2, []), 0) }, "epochs"],
  ["a second result", { events: replaced(5, result("a")) }, "transcript"],
  ["a turn before all results", { events: replaced(5, claimed, 3) }, "transcript"],
  ["a turn twice", { events: replaced(6, turn(1, [])) }, "transcript"],
  ["a call id twice", { events: replaced(6, turn(2, [call("a", "once")])) }, "transcript"],
  ["an end with an open call", { events: replaced(6, turn(2, [call("c", "again")])) }, "transcript"],
  ["an output that was taken and lost", { acknowledged: [{ callId: "z", outputJson: "1" }] }, "acknowledged"],
  ["an output that was taken beside another", { acknowledged: [{ callId: "a", outputJson: "1" }] }, "acknowledged"],
  ["a cancellation that was told and lost", { canceledAtMs: 50 }, "acknowledged"],
  ["an effect twice that must not be", { effects: effectsOf(["a", "a", "b"]) }, "at most once"],
  ["an effect that is told and did not happen", { effects: effectsOf(["b"]) }, "at most once"],
  [
    "an effect that happened and is told as failed",
    { events: replaced(3, result("a", '{"error":"cannot be called"}'), 1) },
    "at most once",
  ],
  ["an effect that is told and never happened", { effects: effectsOf(["a"]) }, "at least once"],
  ["a failure of what may be repeated", { events: replaced(5, result("b", '{"error":"gone"}')) }, "at least once"],
  ["an effect of a call that is not committed", { effects: effectsOf(["a", "b", "x"]) }, "effects"],
  [
    "a call that is repeated under another key",
    { effects: [...effectsOf(["a"]), ...["x", "y"].map((id) => ({ ...effectsOf(["b"])[0]!, idempotencyKey: id }))] },
    "same key",
  ],
  ["an effect long after the cancellation", { events: canceledLog, canceledAtMs: -5_000 }, "nothing after canceled"],
  ["a watcher that missed an event", { watched: [watcher({ seen: goodSeen.slice(1) })] }, "clients see the record"],
  [
    "a watcher that saw what is not in the log",
    { watched: [watcher({ seen: shown(canceledLog) })] },
    "clients see the record",
  ],
  ["a stream that ended early", { watched: [watcher({ seen: shown(goodLog.slice(0, 3)) })] }, "streams end"],
  ["a request that was refused", { refusals: ["permission denied"] }, "granted"],
  ["a stream that failed", { watched: [watcher({ error: "data loss", hasEnded: false })] }, "streams end"],
  ["a stream that never ended", { watched: [watcher({ hasEnded: false })] }, "streams end"],
  ["a word after the last", { watched: [watcher({ seen: [...goodSeen, toldAnew("")] })] }, "streams end"],
  [
    "text of a former attempt without a reset",
    { watched: [watcher({ seen: goodSeen.filter(({ kind }) => kind !== "replaced") })] },
    "prefix or reset",
  ],
  [
    "text that is in no record when the run ends",
    { events: cutLog(), watched: [watcher({ seen: cutSeen([delta({ turn: 2, attempt: 1, index: 0 }, "All is")]) })] },
    "prefix or reset",
  ],
  [
    "text that goes further than the record of a run that ended in mid-turn",
    {
      events: cutLog(checkpoint({ turn: 2, attempt: 1, deltaCount: 1 }, "All")),
      watched: [watcher({ seen: cutSeen([delta({ turn: 2, attempt: 1, index: 0 }, "All is")], "All") })],
    },
    "prefix or reset",
  ],
  [
    "a delta that came twice",
    {
      watched: [watcher({ seen: goodSeen.flatMap((seen): Seen[] => (seen.kind === "delta" ? [seen, seen] : [seen])) })],
    },
    "prefix or reset",
  ],
  [
    "a delta that was left out without a reset",
    {
      watched: [
        watcher({
          seen: goodSeen.map((seen) =>
            seen.kind === "delta" && seen.delta.index === 1
              ? delta({ turn: 2, attempt: 129, index: 2 }, " done")
              : seen,
          ),
        }),
      ],
    },
    "prefix or reset",
  ],
  [
    "text of a turn that is committed",
    { watched: [watcher({ seen: goodSeen.toSpliced(-1, 0, delta({ turn: 2, attempt: 129, index: 2 }, "!")) })] },
    "prefix or reset",
  ],
  [
    "a draft with a gap",
    {
      events: drafted(
        checkpoint({ turn: 2, attempt: 2, deltaCount: 1 }, "All"),
        checkpoint({ turn: 2, attempt: 2, deltaCount: 3, firstDelta: 2 }, " done."),
      ),
    },
    "drafts",
  ],
  [
    "a draft of another text",
    { events: drafted(checkpoint({ turn: 2, attempt: 2, deltaCount: 1 }, "Nothing")) },
    "drafts",
  ],
  [
    "a draft of a turn that is over",
    { events: drafted(checkpoint({ turn: 1, attempt: 1, deltaCount: 1 }, "I")) },
    "drafts",
  ],
  [
    "a draft that goes back to a former attempt",
    {
      events: drafted(
        checkpoint({ turn: 2, attempt: 2, deltaCount: 1 }, "All"),
        checkpoint({ turn: 2, attempt: 1, deltaCount: 1 }, "All"),
      ),
    },
    "drafts",
  ],
  [
    "a prompt with a call that nobody answered",
    { prompts: [[{ role: "assistant", callIds: ["a"], answersCallId: "" }]] },
    "transcript",
  ],
  [
    "a prompt with answers in another order",
    {
      prompts: [
        [
          { role: "assistant", callIds: ["a", "b"], answersCallId: "" },
          { role: "tool", callIds: [], answersCallId: "b" },
          { role: "tool", callIds: [], answersCallId: "a" },
        ],
      ],
    },
    "transcript",
  ],
];

/** A log that ends in mid-turn, and what a watcher saw of it: what was told stands before the end. */
function cutLog(...checkpoints: Body[]): RunEvent[] {
  const cut = checkpoints.map((body): [Body, number] => [body, 2]);
  return log(pairs(goodLog).toSpliced(6, 2, ...cut, [ended(RunState.INCOMPLETE), 2]));
}

function cutSeen(told: Seen[], checkpointed?: string): Seen[] {
  const before = checkpointed === undefined ? [] : [checkpoint({ turn: 2, attempt: 1, deltaCount: 1 }, checkpointed)];
  return shown(cutLog(...before)).toSpliced(-1, 0, ...told);
}

/** The log with checkpoints before its last turn, whose commit is of the second attempt. */
function drafted(...checkpoints: Body[]): RunEvent[] {
  const entries = pairs(goodLog).toSpliced(6, 1, [
    { case: "turnCommitted", value: { turn: 2, attempt: 2, items: [text("All is done.")] } },
    2,
  ]);
  return log(entries.toSpliced(6, 0, ...checkpoints.map((body): [Body, number] => [body, 2])));
}

function pairs(events: readonly RunEvent[]): [Body, number][] {
  return events.map((event) => [event.event as Body, epochByEvent.get(event) ?? 0]);
}

function effectsOf(callIds: string[]) {
  return callIds.map((id) => ({ tool: id === "a" ? "once" : "again", key: `key-${id}`, idempotencyKey: id, atMs: 1 }));
}

describe("the checker of histories", () => {
  it("finds nothing in a good one", () => {
    expect(checkHistory(history())).toEqual([]);
    const drafts = drafted(
      checkpoint({ turn: 2, attempt: 1, deltaCount: 4 }, "Nothing"),
      checkpoint({ turn: 2, attempt: 2, deltaCount: 1 }, "All"),
      checkpoint({ turn: 2, attempt: 2, deltaCount: 2, firstDelta: 1 }, " is"),
    );
    expect(checkHistory(history({ events: drafts }))).toEqual([]);
  });

  it("LOOP-14 takes an outcome that is told as unknown, whether it happened or not", () => {
    const events = replaced(3, result("a", '{"error":"outcome_unknown: lost"}'), 1);
    expect(checkHistory(history({ events, acknowledged: [] }))).toEqual([]);
    expect(checkHistory(history({ events, acknowledged: [], effects: effectsOf(["b"]) }))).toEqual([]);
  });

  it.each(bad)("finds %s", (_title, more, rule) => {
    expect(checkHistory(history(more)).map((violation) => violation.rule)).toContain(rule);
  });
});
