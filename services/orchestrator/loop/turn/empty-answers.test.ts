import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { createFakeModel, type Said } from "../../testing/fakes/fake-model.ts";
import { openRun } from "../../testing/loop-run.ts";

type Reason = LanguageModelV4FinishReason["unified"];

/** An answer of these parts that ends so. */
function ended(finishReason: Reason, parts: LanguageModelV4StreamPart[] = []): Said {
  return { parts, finishReason };
}

async function runOf(...answers: Said[]) {
  const model = createFakeModel("quiet", (_, count) => answers[count - 1] ?? { text: "unasked" });
  const run = await openRun({
    turns: [],
    model,
    limits: { modelRetries: 1, modelStallTimeout: durationFromMs(5_000) },
  });
  await run.work();
  const { state, endReason, error, outputText, usage } = await run.view();
  return { state, endReason, error, outputText, inputTokens: usage?.inputTokens, asked: model.asked.length };
}

const calling: Said = { calls: [{ id: "a", name: "double", input: '{"value":1}' }] };
const thought: LanguageModelV4StreamPart[] = [{ type: "reasoning-delta", id: "r", delta: "hm" }];
const blank: LanguageModelV4StreamPart[] = [{ type: "text-delta", id: "t", delta: " \n" }];

describe("an answer without words and calls", () => {
  test.each<[string, Said]>([
    ["that stopped", ended("stop")],
    ["that stopped after a thought", ended("stop", thought)],
    ["of blanks", ended("stop", blank)],
    ["for another reason", ended("other")],
    ["for calls that it does not hold", ended("tool-calls")],
    ["for an error", ended("error")],
  ])("LOOP-1 LOOP-11 %s is asked for once more, and counts", async (_, said) => {
    expect(await runOf(said, { text: "here" })).toEqual({
      state: RunState.COMPLETED,
      endReason: RunEndReason.FINAL_ANSWER,
      error: "",
      outputText: "here",
      inputTokens: 20n,
      asked: 2,
    });
  });

  test.each<[Reason, string]>([
    ["stop", 'the model answered without words and calls, twice (it ended with "stop")'],
    ["other", 'the model answered without words and calls, twice (it ended with "other")'],
    ["tool-calls", 'the model announced calls and made none, twice (it ended with "tool-calls")'],
  ])("LOOP-1 twice, ended with %s, fails the run and says so", async (reason, error) => {
    const failed = { state: RunState.FAILED, endReason: RunEndReason.EMPTY_ANSWER, error, asked: 2 };
    expect(await runOf(ended(reason), ended(reason))).toMatchObject(failed);
  });

  test("LOOP-1 ended with an error fails the run as any error of the model", async () => {
    const failed = { state: RunState.FAILED, endReason: RunEndReason.MODEL_ERROR, asked: 2 };
    expect(await runOf(ended("error"), ended("error"))).toMatchObject(failed);
  });

  test.each<[Reason, RunEndReason]>([
    ["length", RunEndReason.MAX_OUTPUT_TOKENS],
    ["content-filter", RunEndReason.CONTENT_FILTER],
  ])(
    "LOOP-1 that was cut off (%s) ends the run with that reason, and is not asked for again",
    async (finish, endReason) => {
      expect(await runOf(ended(finish))).toMatchObject({ state: RunState.INCOMPLETE, endReason, asked: 1 });
    },
  );

  test("LOOP-1 is the end of a run whose calls are done, if it is meant", async () => {
    const completed = { state: RunState.COMPLETED, endReason: RunEndReason.FINAL_ANSWER, outputText: "", asked: 3 };
    expect(await runOf(calling, ended("stop"), ended("stop"))).toMatchObject(completed);
    const failed = { state: RunState.FAILED, endReason: RunEndReason.EMPTY_ANSWER, asked: 3 };
    expect(await runOf(calling, ended("other"), ended("other"))).toMatchObject(failed);
  });
});
