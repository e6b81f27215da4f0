import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV2 } from "@ai-sdk/provider";
import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ModelSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { type Item, ItemSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type AnyLanguageModel, currentModelFrom } from "../providers/openai-compatible/older-models.ts";
import { promptFromItems } from "./prompt.ts";
import { showingImages } from "./stored-images.ts";

const png = Buffer.alloc(150_000, "not really a picture");
const base64 = png.toString("base64");
const picture = { blockJson: '{"type":"image","mimeType":"image/png"}', storedReference: "s.png", size: 150_000n };
const text = (words: string) => ({ blockJson: JSON.stringify({ type: "text", text: words }) });
const sound = { blockJson: '{"type":"audio","mimeType":"audio/wav"}', storedReference: "s.wav", size: 9n };

/** The body of the request in which a model is shown a result. */
async function bodyShown(
  provider: string,
  modelOf: (fetch: typeof globalThis.fetch) => AnyLanguageModel,
  result: MessageInitShape<typeof ToolResultSchema>,
  options: JsonObject = {},
): Promise<string> {
  let body = "";
  const language = currentModelFrom(
    modelOf(async (_, init) => {
      body = String(init?.body);
      return new Response("{}", { status: 400 });
    }),
  );
  const items: Item[] = [
    { item: { case: "functionCall" as const, value: { callId: "c", name: "shot", argumentsJson: "{}" } } },
    { item: { case: "functionCallOutput" as const, value: { callId: "c", result } } },
  ].map((item) => create(ItemSchema, item));
  const model = showingImages(language, create(ModelSchema, { provider, model: "m", options }), async (reference) =>
    reference === "s.png" ? png : undefined,
  );
  await Promise.resolve(model.doStream({ prompt: promptFromItems("", items) })).catch(() => {}); // it was seen
  return body;
}

const anthropic = (fetch: typeof globalThis.fetch) => createAnthropic({ apiKey: "k", fetch }).languageModel("m");
const openai = (fetch: typeof globalThis.fetch) => createOpenAI({ apiKey: "k", fetch }).languageModel("m");
const compatible = (fetch: typeof globalThis.fetch) =>
  createOpenAICompatible({ name: "c", baseURL: "http://m", fetch, supportsMultiPartToolContent: true }).chatModel("m");
const shot = { outputJson: '{"clicked":true}', content: [text("see"), picture, sound] };

describe("a result with an image", () => {
  test("LOOP-8 goes to Anthropic's models as text, an image, and a reference to the rest", async () => {
    const body = JSON.parse(await bodyShown("@ai-sdk/anthropic", anthropic, shot));
    expect(body.messages.at(-1).content[0].content).toEqual([
      { type: "text", text: '{"clicked":true}' },
      { type: "text", text: "see" },
      { type: "image", source: { type: "base64", media_type: "image/png", data: base64 } },
      { type: "text", text: '{"type":"audio","mimeType":"audio/wav","storedReference":"s.wav","bytes":9}' },
    ]);
  });

  test("LOOP-8 goes to OpenAI's models as text and an image", async () => {
    const body = JSON.parse(await bodyShown("@ai-sdk/openai", openai, shot));
    expect(body.input.at(-1).output).toMatchObject([
      { type: "input_text", text: '{"clicked":true}' },
      { type: "input_text", text: "see" },
      { type: "input_image", image_url: `data:image/png;base64,${base64}` },
      { type: "input_text", text: expect.stringContaining("s.wav") },
    ]);
  });

  test("LOOP-8 goes to others as text with a reference, unless the agent's model says that it takes images", async () => {
    const body = await bodyShown("openai-compatible", compatible, shot);
    expect(body.length).toBeLessThan(2_000);
    expect(JSON.parse(body).messages.at(-1).content).toBe(
      '{"clicked":true}\nsee\n{"type":"image","mimeType":"image/png","storedReference":"s.png","bytes":150000}\n{"type":"audio","mimeType":"audio/wav","storedReference":"s.wav","bytes":9}',
    );
    const told = await bodyShown("openai-compatible", compatible, shot, { tool_images: true });
    expect(JSON.parse(told).messages.at(-1).content).toContainEqual(
      expect.objectContaining({ type: "image_url", image_url: { url: `data:image/png;base64,${base64}` } }),
    );
    expect(JSON.parse(told)).not.toHaveProperty("tool_images");
    expect(await bodyShown("@ai-sdk/anthropic", anthropic, shot, { tool_images: false })).not.toContain(base64);
  });

  test("LOOP-8 is told by its reference where it is not kept any more, and in errors", async () => {
    const gone = { ...picture, storedReference: "s.gone" };
    expect(await bodyShown("@ai-sdk/anthropic", anthropic, { ...shot, content: [gone] })).toContain("s.gone");
    const failed = JSON.parse(await bodyShown("@ai-sdk/anthropic", anthropic, { ...shot, isError: true }));
    expect(failed.messages.at(-1).content[0]).toMatchObject({
      is_error: true,
      content: expect.stringMatching(/s\.png/),
    });
  });

  test("LOOP-11 goes to models of older packages in the words of theirs", async () => {
    const asked: unknown[] = [];
    const older = {
      specificationVersion: "v2",
      provider: "old",
      modelId: "m",
      doStream: async ({ prompt }: { prompt: unknown[] }) => asked.push(prompt.at(-1)),
    } as unknown as LanguageModelV2;
    await bodyShown("old", () => older, shot, { tool_images: true });
    expect(JSON.stringify(asked)).toContain(`{"type":"media","data":"${base64}","mediaType":"image/png"}`);
  });

  test("says nothing twice: not what the blocks are, and not their text", async () => {
    const blocks = '{"content":[{"type":"image","mimeType":"image/png","storedReference":"s.png","bytes":150000}]}';
    const alone = JSON.parse(
      await bodyShown("@ai-sdk/anthropic", anthropic, { outputJson: blocks, content: [picture] }),
    );
    expect(alone.messages.at(-1).content[0].content).toMatchObject([{ type: "image" }]);
    const told = {
      outputJson: '"well"',
      content: [{ blockJson: '{"type":"text","text":"well","annotations":{"priority":1}}' }],
    };
    const words = JSON.parse(await bodyShown("@ai-sdk/anthropic", anthropic, told));
    expect(JSON.stringify(words.messages.at(-1).content[0].content)).toMatch(/^[^w]*well[^w]*$/);
  });

  test("keeps the digits of numbers that no double holds", async () => {
    const body = await bodyShown("@ai-sdk/anthropic", anthropic, { outputJson: '{"id":9007199254740993}' });
    expect(body).toContain("9007199254740993");
  });
});
