import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { type RunEvent, RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { Role, RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { replayFromEvents } from "#runtime/content/replay.ts";
import { linesOfReplay } from "./lines.ts";

const message = (role: Role, text: string) => ({
  item: { case: "message" as const, value: { role, content: [{ part: { case: "text" as const, value: text } }] } },
});
const call = (callId: string) => ({
  item: { case: "functionCall" as const, value: { callId, name: "double", argumentsJson: '{"value":2}' } },
});

function eventAt(sequence: number, atMs: number, event: RunEvent["event"] | object): RunEvent {
  const time = timestampFromMs(1_000_000 + atMs);
  return create(RunEventSchema, { runId: "run_1", sequence, createTime: time, event: event as RunEvent["event"] });
}

const events = [
  eventAt(0, 0, {
    case: "accepted",
    value: {
      sessionId: "s",
      agent: "a",
      input: [message(Role.USER, "go on\nplease")],
      fork: { runId: "run_0", atSequence: 4 },
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    },
  }),
  eventAt(1, 5, { case: "claimed", value: {} }),
  eventAt(2, 10, { case: "inboxTaken", value: { eventIds: ["tr:1"], items: [message(Role.USER, "news")] } }),
  eventAt(3, 100, {
    case: "turnCommitted",
    value: {
      turn: 1,
      attempt: 2,
      model: "m",
      items: [message(Role.ASSISTANT, "I look."), call("a"), call("b")],
      usage: { inputTokens: 9n, outputTokens: 3n, cost: { currencyCode: "USD", micros: 12_300n } },
    },
  }),
  eventAt(4, 150, {
    case: "callFinished",
    value: {
      callId: "b",
      result: { outputJson: '{"error":"no"}', isError: true },
      execution: { executionType: ExecutionType.HOSTED, provider: "worker", attemptCount: 2 },
    },
  }),
  eventAt(5, 160, { case: "claimed", value: {} }),
  eventAt(6, 200, {
    case: "callFinished",
    value: { callId: "a", result: { outputJson: "4" }, execution: { executionType: ExecutionType.SPACE } },
  }),
  eventAt(7, 210, { case: "callFinished", value: { callId: "a", result: { outputJson: "5" } } }),
  eventAt(8, 300, {
    case: "ended",
    value: { state: RunState.FAILED, endReason: RunEndReason.MODEL_ERROR, error: "no more" },
  }),
];

test("a log is folded to turns, each with its calls and the first of their results", () => {
  const replay = replayFromEvents(events)!;
  expect(replay).toMatchObject({
    runId: "run_1",
    given: ["go on\nplease"],
    fork: { runId: "run_0", atSequence: 4 },
    traceId: "0af7651916cd43dd8448eb211c80319c",
    events: 9,
  });
  expect(replay.steps.map(({ kind, sequence }) => `${kind} ${sequence}`)).toEqual([
    "note 1",
    "note 2",
    "turn 3",
    "note 5",
    "end 8",
  ]);
  expect(replay.steps[2]).toMatchObject({
    text: "I look.",
    usage: { inputTokens: 9, outputTokens: 3, cost: { currencyCode: "USD", micros: 12_300 } },
    calls: [
      {
        callId: "a",
        result: { output: "4", isError: false, sequence: 6, afterMs: 100, execution: { kind: "space", attempts: 0 } },
      },
      {
        callId: "b",
        result: {
          output: '{"error":"no"}',
          isError: true,
          sequence: 4,
          afterMs: 50,
          execution: { kind: "hosted", provider: "worker", attempts: 2 },
        },
      },
    ],
  });
  expect(JSON.parse(JSON.stringify(replay))).toEqual(replay);
});

test("a reader sees each turn with its place in the log, claims, news and the end", () => {
  const lines = linesOfReplay(replayFromEvents(events)!);
  expect(lines).toEqual([
    "run_1 of a in session s, accepted 1970-01-01T00:16:40.000Z, trace 0af7651916cd43dd8448eb211c80319c",
    "forked from run run_0 at event 4",
    "   0    +0.00s given go on please",
    "   1    +0.01s claimed by a process",
    "   2    +0.01s from the inbox: news",
    "   3    +0.10s turn 1 m, attempt 2, 9 tokens in, 3 out, 0.0123 USD",
    "               I look.",
    '               → double {"value":2} a',
    "               ✓ 4 event 6, 100 ms, by space",
    '               → double {"value":2} b',
    '               ✗ {"error":"no"} event 4, 50 ms, by worker (hosted), 2 attempts',
    "   5    +0.16s claimed by a process",
    "   8    +0.30s failed (model_error): no more",
  ]);
});

test("LOOP-10 what a turn had said by a checkpoint is a note in its place", () => {
  const checkpoint = eventAt(2, 90, {
    case: "textCheckpoint",
    value: { turn: 1, attempt: 1, deltaCount: 3, text: "I lo" },
  });
  const lines = linesOfReplay(replayFromEvents([...events.slice(0, 2), checkpoint])!);
  expect(lines.at(-1)).toBe("   2    +0.09s turn 1, attempt 1, says: I lo");
});

test("LOOP-2 an answer that was dropped is a note that says so, and what it used", () => {
  const usage = { inputTokens: 10n, outputTokens: 5n };
  const dropped = eventAt(2, 90, { case: "answerDropped", value: { turn: 1, attempt: 1, model: "m", usage } });
  const lines = linesOfReplay(replayFromEvents([...events.slice(0, 2), dropped])!);
  expect(lines.at(-1)).toBe(
    "   2    +0.09s turn 1, attempt 1: the answer of m went against tool_choice, or held nothing, and was dropped (10 tokens in, 5 out)",
  );
});

test("a log that was cut off shows the calls without a result, and one without a beginning is none", () => {
  const lines = linesOfReplay(replayFromEvents(events.slice(0, 4))!);
  expect(lines.filter((line) => line.includes("no result"))).toHaveLength(2);
  expect(replayFromEvents([])).toBeUndefined();
});
