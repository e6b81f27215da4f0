import { fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { createJsonRunPrinter, createRunPrinter, type RunPrinter, type Write } from "./run-printer.ts";

/** What a printer writes for these updates, each in the contract's JSON form. */
function written(createPrinter: (write: Write) => RunPrinter, ...updates: JsonValue[]): string {
  let text = "";
  const printer = createPrinter((piece) => {
    text += piece;
  });
  for (const update of updates) printer.show(fromJson(WatchRunResponseSchema, update));
  return text;
}

const delta = (text: string) => ({ delta: { text } });
const turn = (...items: JsonValue[]) => ({ event: { turnCommitted: { items } } });
const message = (text: string) => ({ message: { role: "ROLE_ASSISTANT", content: [{ text }] } });
const call = { functionCall: { callId: "c1", name: "repeat", argumentsJson: '{"text":\n"x"}' } };
const finished = (result: JsonValue) => ({ event: { callFinished: { callId: "c1", result } } });
const ended = (more: JsonObject) => ({ event: { ended: more } });

describe("a run for people", () => {
  test("text is shown as it comes, and not again when its turn is committed", () => {
    expect(written(createRunPrinter, delta("Hel"), delta("lo"), turn(message("Hello")))).toBe("Hello");
  });

  test("text that came without deltas is shown from its turn", () => {
    expect(written(createRunPrinter, turn(message("Hello")))).toBe("Hello");
  });

  test("a call, its progress and its result have a line each, below the text before them", () => {
    const progress = { delta: { progress: { callId: "c1", progress: { progress: 1, total: 4, message: "half" } } } };
    const result = { outputJson: '{"a":1}' };
    const text = written(createRunPrinter, delta("Look:"), turn(message("Look:"), call), progress, finished(result));
    expect(text).toBe('Look:\n→ repeat {"text": "x"}\n    c1 1/4 half\n✓ {"a":1} c1\n');
  });

  test("a result that is an error, and one that is long, show so", () => {
    expect(written(createRunPrinter, finished({ outputJson: '"no"', isError: true }))).toBe('✗ "no" c1\n');
    const long = written(createRunPrinter, finished({ outputJson: JSON.stringify("x".repeat(500)) }));
    expect(long).toMatch(/^✓ "x{158}… c1\n$/);
  });

  test("the answer of a tool at which the run stops is shown whole, as its text", () => {
    const outputText = "y".repeat(200);
    const end = ended({ state: "RUN_STATE_COMPLETED", endReason: "RUN_END_REASON_STOPPED_AT_TOOL", outputText });
    const text = written(
      (write) => createRunPrinter(write, { saysCompleted: false }),
      turn(message("Look:"), call),
      end,
    );
    expect(text).toBe(`Look:\n→ repeat {"text": "x"}\n${outputText}\n`);
  });

  test("an answer that another process starts again is said to be one, also where only its text tells so", () => {
    const of = (attempt: number, text: string) => ({ delta: { turn: 1, attempt, text } });
    const text = written(createRunPrinter, of(1, "one "), of(1, "two "), of(1025, "one "), of(1025, "two three"));
    expect(text).toBe("one two \n(the model starts this answer again)\none two three");
  });

  test("an answer that the model starts again is said to be one", () => {
    const text = written(createRunPrinter, delta("Hal"), { replaced: {} }, delta("Hello"), turn(message("Hello")));
    expect(text).toBe("Hal\n(the model starts this answer again)\nHello");
  });

  test("LOOP-2 an answer that was dropped is said to be one", () => {
    const dropped = { event: { answerDropped: { turn: 1, attempt: 1 } } };
    expect(written(createRunPrinter, delta("No"), dropped)).toBe(
      "No\n(this answer went against tool_choice, or held nothing, and is dropped)\n",
    );
    const broken = { event: { answerDropped: { turn: 1, attempt: 1, brokeOff: true } } };
    expect(written(createRunPrinter, delta("Ye"), broken)).toBe("Ye\n(this answer broke off, and is dropped)\n");
  });

  test("LOOP-10 the text so far is shown to who joins in mid-turn, and only what is new of it to who was there", () => {
    const soFar = { replaced: { text: "Hello, " } };
    const rest = [delta("Ada"), turn(message("Hello, Ada"))];
    expect(written(createRunPrinter, soFar, ...rest)).toBe("Hello, Ada");
    expect(written(createRunPrinter, delta("Hel"), soFar, ...rest)).toBe("Hello, Ada");
  });

  test.each([
    [{ state: "RUN_STATE_COMPLETED", endReason: RunEndReason.FINAL_ANSWER }, "completed (final_answer)\n"],
    [
      { state: "RUN_STATE_FAILED", endReason: "RUN_END_REASON_MODEL_ERROR", error: "it broke" },
      "failed (model_error): it broke\n",
    ],
    [{ state: "RUN_STATE_CANCELED" }, "canceled\n"],
  ])("the end %j is told as %j", (end, text) => {
    expect(written(createRunPrinter, ended(end))).toBe(text);
  });

  test("a run that waits says for whose outputs", () => {
    const parked = {
      event: {
        parked: {
          calls: [
            { callId: "c1", name: "a" },
            { callId: "c2", name: "b" },
          ],
        },
      },
    };
    expect(written(createRunPrinter, parked)).toBe("waits for outputs of a, b\n");
  });
});

test("a run for programs is a line of the contract's JSON for each update", () => {
  const printed: JsonValue[] = [];
  const printer = createJsonRunPrinter((value) => printed.push(value));
  const updates = [delta("Hi"), ended({ state: "RUN_STATE_COMPLETED" })];
  for (const update of updates) printer.show(fromJson(WatchRunResponseSchema, update));
  expect(printed).toEqual(updates);
});
