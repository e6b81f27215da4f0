import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import {
  RunDeltaSchema,
  type RunEvent,
  RunEventSchema,
  RunTextReplacedSchema,
} from "#gen/toolbus/run/v1/run_event_pb.ts";
import { ItemSchema, Role, RunEndReason, RunForkSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { logFileFrom, logsFromFile } from "./log-file.ts";
import { spentOf, TimelineReader } from "./timeline.ts";

type Happening = NonNullable<MessageInitShape<typeof RunEventSchema>["event"]>;

/** Events, each so many milliseconds after the first. */
function eventsAt(happenings: Readonly<Record<number, Happening>>): RunEvent[] {
  return Object.entries(happenings).map(([ms, event], index) =>
    create(RunEventSchema, { runId: "r", sequence: index + 1, createTime: timestampFromMs(Number(ms)), event }),
  );
}

function read(events: readonly RunEvent[]) {
  const reader = new TimelineReader();
  for (const event of events) reader.event(event);
  return reader;
}

const call = (callId: string, name: string) =>
  ({ item: { case: "functionCall", value: { callId, name, argumentsJson: "{}" } } }) as const;
const usage = { inputTokens: 10n, outputTokens: 2n, cost: { currencyCode: "EUR", micros: 5n } };

const whole: Record<number, Happening> = {
  1000: {
    case: "accepted",
    value: { agent: "a", sessionId: "s", traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
  },
  1010: { case: "claimed", value: {} },
  1110: { case: "turnCommitted", value: { turn: 1, items: [call("c1", "one"), call("c2", "two")], usage } },
  1210: {
    case: "callFinished",
    value: {
      callId: "c1",
      result: { outputJson: "1" },
      execution: { executionType: ExecutionType.MCP, provider: "mcp", attemptCount: 2 },
    },
  },
  1310: { case: "callFinished", value: { callId: "c2", result: { outputJson: '"no"', isError: true } } },
  1500: { case: "turnCommitted", value: { turn: 2, items: [], usage } },
  1510: {
    case: "ended",
    value: { state: RunState.COMPLETED, endReason: RunEndReason.FINAL_ANSWER, outputText: "done" },
  },
};

describe("a run as spans (ORCH-12)", () => {
  it("each begins where what came before it ended", () => {
    const { timeline } = read(eventsAt(whole));
    const spans = timeline.spans.map(({ label, startMs, endMs, isFault }) => [label, startMs, endMs, isFault]);
    expect(spans).toEqual([
      ["queued", 1000, 1010, false],
      ["turn 1", 1010, 1110, false],
      ["one", 1110, 1210, false],
      ["two", 1110, 1310, true],
      ["turn 2", 1310, 1500, false],
      ["completed: final answer", 1510, 1510, false],
    ]);
    expect(timeline).toMatchObject({ state: RunState.COMPLETED, outputText: "done", turnCount: 2, agent: "a" });
    expect(spentOf(timeline)).toMatchObject({ inputTokens: 20n, cost: { currencyCode: "EUR", micros: 10n } });
  });

  it("a call says who executed it and how often it was tried, and the run its trace", () => {
    const { timeline } = read(eventsAt(whole));
    const [one, two] = timeline.spans.filter(({ kind }) => kind === "call");
    expect(one?.facts).toEqual({ call: "c1", kind: "mcp", provider: "mcp", attempts: "2" });
    expect(two?.facts, "nobody executed it").toEqual({ call: "c2" });
    expect(timeline.traceId).toBe("0af7651916cd43dd8448eb211c80319c");
  });

  it("after any event, what is not over is open, and the model is asked only when no call is awaited", () => {
    const events = eventsAt(whole);
    const openAfter = (count: number) =>
      read(events.slice(0, count))
        .timeline.spans.filter(({ endMs }) => endMs === undefined)
        .map(({ label }) => label);
    const open = events.map((_, index) => openAfter(index + 1));
    expect(open).toEqual([["queued"], ["turn 1"], ["one", "two"], ["two"], ["turn 2"], ["turn 3"], []]);
  });

  it("a takeover, a dropped answer and a wait are shown as such", () => {
    const { timeline } = read(
      eventsAt({
        0: { case: "accepted", value: {} },
        10: { case: "claimed", value: {} },
        20: { case: "claimed", value: {} },
        30: { case: "answerDropped", value: { turn: 1, attempt: 1, brokeOff: true } },
        40: { case: "turnCommitted", value: { turn: 1, attempt: 2, items: [call("f", "ask_me")] } },
        50: { case: "parked", value: { calls: [{ callId: "f", name: "ask_me", argumentsJson: "{}" }] } },
      }),
    );
    expect(timeline.spans.map(({ label, isFault }) => [label, isFault])).toEqual([
      ["queued", false],
      ["turn 1, attempt 1: dropped", true],
      ["taken over by another process", false],
      ["turn 1", false],
      ["ask_me", false],
      ["waits for ask_me", false],
    ]);
    expect(timeline.state).toBe(RunState.REQUIRES_ACTION);
  });

  it("a run says which calls it waits for its client to answer, until they are answered or it goes on", () => {
    const asked = ["f", "g"].map((callId) => ({ callId, name: "ask_me", argumentsJson: "{}" }));
    const parked: Record<number, Happening> = {
      0: { case: "accepted", value: {} },
      10: { case: "claimed", value: {} },
      20: { case: "turnCommitted", value: { turn: 1, items: [call("f", "ask_me"), call("g", "ask_me")] } },
      30: { case: "parked", value: { calls: asked } },
    };
    const answered: Record<number, Happening> = {
      40: { case: "callFinished", value: { callId: "f", result: { outputJson: "1" } } },
    };
    const required = (happened: Record<number, Happening>) =>
      read(eventsAt({ ...parked, ...happened })).timeline.required.map(({ callId }) => callId);
    expect(required({})).toEqual(["f", "g"]);
    expect(required(answered)).toEqual(["g"]);
    expect(required({ ...answered, 50: { case: "claimed", value: {} } })).toEqual([]);
    expect(required({ ...answered, 50: { case: "ended", value: { state: RunState.CANCELED } } })).toEqual([]);
  });

  it("each wait for its client is a span of its own", () => {
    const park = (callId: string): Happening => ({
      case: "parked",
      value: { calls: [{ callId, name: "ask_me" }] },
    });
    const { timeline } = read(
      eventsAt({
        0: { case: "accepted", value: {} },
        10: { case: "claimed", value: {} },
        20: { case: "turnCommitted", value: { turn: 1, items: [call("f", "ask_me")] } },
        30: park("f"),
        40: { case: "callFinished", value: { callId: "f", result: { outputJson: "1" } } },
        50: { case: "claimed", value: {} },
        60: { case: "turnCommitted", value: { turn: 2, items: [call("g", "ask_me")] } },
        70: park("g"),
      }),
    );
    const ids = timeline.spans.map(({ id }) => id);
    expect([...new Set(ids)]).toEqual(ids);
    const waits = timeline.spans.filter(({ kind }) => kind === "waiting");
    expect(waits.map(({ startMs, endMs }) => [startMs, endMs])).toEqual([
      [30, 50],
      [70, undefined],
    ]);
  });

  it("says what the run was asked last, and from where it goes on", () => {
    const said = (role: Role, value: string) =>
      create(ItemSchema, {
        item: { case: "message", value: { role, content: [{ part: { case: "text", value } }] } },
      });
    const input = [said(Role.SYSTEM, "be kind"), said(Role.USER, "hello"), said(Role.USER, "ship it")];
    const fork = create(RunForkSchema, { runId: "run_1", atSequence: 3 });
    const { timeline } = read(eventsAt({ 0: { case: "accepted", value: { input, fork } } }));
    expect([timeline.askedText, timeline.fork?.runId, timeline.fork?.atSequence]).toEqual(["ship it", "run_1", 3]);
  });

  it("what is written belongs to its attempt: another attempt, a replacement, the stored turn put it aside", () => {
    const reader = read(eventsAt({ 0: { case: "accepted", value: {} }, 1: { case: "claimed", value: {} } }));
    const say = (attempt: number, text: string) =>
      reader.delta(create(RunDeltaSchema, { turn: 1, attempt, delta: { case: "text", value: text } }));
    say(1, "Hel");
    say(1, "lo");
    expect(reader.timeline.draft?.text).toBe("Hello");
    say(2, "Hi");
    expect(reader.timeline.draft?.text).toBe("Hi");
    reader.replaced(create(RunTextReplacedSchema, { turn: 1, attempt: 3, text: "Good day" }));
    say(3, "!");
    expect(reader.timeline.draft?.text).toBe("Good day!");
    const [stored] = eventsAt({ 9: { case: "turnCommitted", value: { turn: 1 } } });
    if (stored) reader.event(stored);
    expect(reader.timeline.draft).toBeUndefined();
    say(3, "late");
    expect(reader.timeline.draft).toBeUndefined();
  });
});

describe("a run's log as a file (ORCH-12)", () => {
  it("comes back as it went, alone and with others, and gives the same spans", () => {
    const events = eventsAt(whole);
    const line = JSON.stringify(logFileFrom(events));
    expect(logsFromFile(JSON.stringify(logFileFrom(events), undefined, 1))).toEqual([events]);
    const [back = [], ...others] = logsFromFile(`${line}\n${line}\n`);
    expect([back, ...others]).toEqual([events, events]);
    expect(read(back).timeline).toEqual(read(events).timeline);
  });

  it.each([
    ["no JSON", "{", /is no JSON/],
    ["something else", '{"events":[]}', /is no log of a run/],
    ["null", "null", /is no log of a run/],
    [
      "an event that is none",
      '{"format":"toolbus.run-log.v1","events":[{"sequence":"x"}]}',
      /event 1 .* cannot be read/,
    ],
  ])("%s is refused in words", (_, text, words) => {
    expect(() => logsFromFile(text)).toThrow(words);
  });
});
