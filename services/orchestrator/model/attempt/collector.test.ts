import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ItemSchema, Role, RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { createFakeModel } from "../../testing/fakes/fake-model.ts";
import { openRun } from "../../testing/loop-run.ts";
import { promptFromItems } from "../prompt/prompt.ts";
import { createCollector } from "./collector.ts";

const finish: LanguageModelV4StreamPart = {
  type: "finish",
  finishReason: { unified: "stop", raw: "stop" },
  usage: {
    inputTokens: { total: 1, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 1, text: undefined, reasoning: undefined },
  },
};

function collect(parts: LanguageModelV4StreamPart[]) {
  const pieces: string[] = [];
  const collector = createCollector("m", (piece) => pieces.push(piece.text));
  for (const part of [...parts, finish]) collector.take(part);
  return { parts: collector.answer().parts, pieces };
}

describe("what a provider says by the way", () => {
  test("LOOP-11 is kept whenever it comes: with the start, in the middle, with the end of a thought", () => {
    const { parts, pieces } = collect([
      { type: "reasoning-start", id: "r", providerMetadata: { openai: { itemId: "rs_1" } } },
      { type: "reasoning-delta", id: "r", delta: "hm" },
      { type: "reasoning-delta", id: "r", delta: "", providerMetadata: { anthropic: { signature: "s" } } },
      { type: "reasoning-end", id: "r", providerMetadata: { openai: { reasoningEncryptedContent: "x" } } },
    ]);
    const metadata = { openai: { itemId: "rs_1", reasoningEncryptedContent: "x" }, anthropic: { signature: "s" } };
    expect(parts).toEqual([{ kind: "reasoning", text: "hm", metadataJson: JSON.stringify(metadata) }]);
    expect(pieces).toEqual(["hm"]);
  });

  test("LOOP-11 a thought that is nothing but encrypted stays; an empty text does not", () => {
    const { parts } = collect([
      { type: "reasoning-start", id: "r", providerMetadata: { anthropic: { redactedData: "…" } } },
      { type: "reasoning-end", id: "r" },
      { type: "text-start", id: "t" },
      { type: "text-end", id: "t" },
    ]);
    expect(parts).toEqual([{ kind: "reasoning", text: "", metadataJson: '{"anthropic":{"redactedData":"…"}}' }]);
  });

  test("LOOP-11 two blocks under one id are two parts", () => {
    const block = (text: string): LanguageModelV4StreamPart[] => [
      { type: "text-start", id: "0" },
      { type: "text-delta", id: "0", delta: text },
      { type: "text-end", id: "0" },
    ];
    expect(collect([...block("one"), ...block("two")]).parts).toMatchObject([{ text: "one" }, { text: "two" }]);
  });

  test("LOOP-11 goes back with the next request, of texts, thoughts and calls alike, through the log", async () => {
    const signed = (value: string) => ({ google: { thoughtSignature: value } });
    const model = createFakeModel("m", (_, count) =>
      count > 1
        ? { text: "done" }
        : {
            calls: [{ id: "c", name: "double" }],
            parts: [
              { type: "reasoning-start", id: "r", providerMetadata: signed("r") },
              { type: "reasoning-end", id: "r" },
              { type: "text-start", id: "t" },
              { type: "text-delta", id: "t", delta: "I see" },
              { type: "text-end", id: "t", providerMetadata: signed("t") },
              {
                type: "tool-call",
                toolCallId: "c",
                toolName: "double",
                input: '{"value":1}',
                providerMetadata: signed("c"),
              },
            ],
          },
    );
    const run = await openRun({ turns: [], model });
    await run.work();
    const assistant = model.asked[1]?.prompt.find(({ role }) => role === "assistant");
    expect(assistant?.content).toMatchObject([
      { type: "reasoning", providerOptions: signed("r") },
      { type: "text", providerOptions: signed("t") },
      { type: "tool-call", providerOptions: signed("c") },
    ]);
  });

  test("LOOP-11 that cannot be read is left out, and the part goes without it", () => {
    const value = { role: Role.ASSISTANT, content: textContent("hello"), providerMetadataJson: "{broken" };
    const prompt = promptFromItems("", [create(ItemSchema, { item: { case: "message", value } })]);
    expect(prompt[0]?.content).toEqual([{ type: "text", text: "hello" }]);
  });
});

test.each(["", " \n"])("LOOP-11 a call with %j as its arguments is one with an empty object", (input) => {
  const { parts } = collect([{ type: "tool-call", toolCallId: "c", toolName: "now", input }]);
  expect(parts).toMatchObject([{ kind: "call", id: "c", argumentsJson: "{}" }]);
});

describe("tools that a provider executes itself", () => {
  const called = { toolCallId: "p", toolName: "double", providerExecuted: true };
  const refusal =
    'the model called "double", a tool that its provider executes: such tools are not supported, and the options of the ' +
    "model have to turn them off";

  test.each<[string, LanguageModelV4StreamPart]>([
    ["a call that begins", { type: "tool-input-start", id: "p", toolName: "double", providerExecuted: true }],
    ["a whole call", { type: "tool-call", input: '{"value":1}', ...called }],
    ["a result", { type: "tool-result", toolCallId: "p", toolName: "double", result: { value: 2 } }],
  ])("LOOP-11 are refused in words, and nothing is executed in their place: %s", async (_, part) => {
    const model = createFakeModel("m", () => ({ text: "I see", parts: [part] }));
    const run = await openRun({ turns: [], model });
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.FAILED,
      endReason: RunEndReason.MODEL_ERROR,
      error: refusal,
    });
    expect(await run.results()).toEqual([]);
    expect(model.asked).toHaveLength(1);
  });
});
