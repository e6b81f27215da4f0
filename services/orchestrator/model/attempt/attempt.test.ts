import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { createFakeModel } from "../../testing/fakes/fake-model.ts";
import { takeAttempt } from "./attempt.ts";

const finish: LanguageModelV4StreamPart = {
  type: "finish",
  finishReason: { unified: "stop", raw: "stop" },
  usage: {
    inputTokens: { total: 7, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 3, text: undefined, reasoning: undefined },
  },
};
const text: LanguageModelV4StreamPart = { type: "text-delta", id: "t", delta: "whole" };

/** A model whose stream stays open after these parts. */
function openEndedModel(parts: readonly LanguageModelV4StreamPart[]) {
  const canceled = Promise.withResolvers<void>();
  const stream = new ReadableStream<LanguageModelV4StreamPart>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
    },
    cancel: () => canceled.resolve(),
  });
  const model: LanguageModelV4 = { ...createFakeModel("open", () => ({})), doStream: async () => ({ stream }) };
  return { model, canceled: canceled.promise };
}

function ask(model: LanguageModelV4, stallMs: number) {
  const options = { stallMs, signal: new AbortController().signal, onPiece: () => {} };
  return takeAttempt(model, { prompt: [] }, options);
}

describe("a stream that does not close", () => {
  test.each([60_000, 100])(
    "LOOP-11 gives its answer soon after its finish, with a watchdog of %d ms",
    async (stallMs) => {
      const { model, canceled } = openEndedModel([text, finish]);
      const answer = await ask(model, stallMs);
      expect(answer).toMatchObject({ parts: [{ text: "whole" }], usage: { inputTokens: 7n, outputTokens: 3n } });
      await canceled;
    },
  );

  test("LOOP-11 gives none without a finish: it has stalled", async () => {
    const { model, canceled } = openEndedModel([text]);
    await expect(ask(model, 100)).rejects.toThrow("the model was silent for 100 ms");
    await canceled;
  });

  test("LOOP-11 that tells an error after its finish gives the error", async () => {
    const { model } = openEndedModel([text, finish, { type: "error", error: new Error("late") }]);
    await expect(ask(model, 60_000)).rejects.toThrow("late");
  });
});
