// Vercel's AI SDK by its provider for Open Responses, unmodified. It sends all that was said each time.

import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, generateText, isStepCount, streamText, tool } from "ai";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { until } from "#runtime/time/until.ts";
import { recordStreams } from "../../fixtures/recorded-streams.ts";
import { type Answered, answered, ask, keys, openResponsesDoor } from "../../fixtures/responses-door.ts";

const stack = new AsyncDisposableStack();
let url: string;

beforeAll(async () => {
  url = (await openResponsesDoor(stack)).suite.url;
}, 120_000);
afterAll(() => stack.disposeAsync());

const openClient = (options: { fetch?: typeof fetch; apiKey?: string } = {}) =>
  createOpenResponses({ name: "toolbus", url: `${url}/v1/responses`, apiKey: keys.alice, ...options });
const tools = {
  get_weather: tool({ inputSchema: z.object({ city: z.string() }), execute: ({ city }) => `sunny in ${city}` }),
};
const prompt = "How is the weather in Bern?";

describe("LOOP-18 the AI SDK", () => {
  it("gets a text", async () => {
    const { text, finishReason, reasoningText } = await generateText({
      model: openClient()("talker"),
      prompt: "hello",
    });
    expect({ text, finishReason, reasoningText }).toEqual({
      text: "You said: hello",
      finishReason: "stop",
      reasoningText: "What was said? ",
    });
  });

  it("streams a text, and what it used", async () => {
    const streams = recordStreams();
    const { textStream, finishReason, usage } = streamText({ model: openClient(streams)("talker"), prompt: "hello" });
    expect((await Array.fromAsync(textStream)).join("")).toBe("You said: hello");
    expect(await finishReason).toBe("stop");
    expect((await usage).outputTokens).toBeGreaterThan(0);
    expect(await streams.findings()).toEqual([]);
  });

  it("calls its function, and brings the output with all that was said", async () => {
    const asked = { tools, prompt, stopWhen: isStepCount(3) };
    const { text, steps } = await generateText({ model: openClient()("weather"), ...asked });
    expect(text).toBe("It is sunny in Bern.");
    expect(steps.map(({ finishReason }) => finishReason)).toEqual(["tool-calls", "stop"]);
  });

  it("refers to what was said by its items, by its provider for OpenAI", async () => {
    const model = createOpenAI({ baseURL: `${url}/v1`, apiKey: keys.alice })("weather");
    const { text, responseMessages } = await generateText({ model, tools, prompt, stopWhen: isStepCount(3) });
    expect(text).toBe("It is sunny in Bern.");
    const messages = [{ role: "user" as const, content: prompt }, ...responseMessages];
    const again = await generateText({ model, tools, messages: [...messages, { role: "user", content: prompt }] });
    expect(again.toolCalls).toMatchObject([{ toolName: "get_weather", input: { city: "Bern" } }]);
  });

  it("streams the call of its function, and what follows its output", async () => {
    const streams = recordStreams();
    const { stream } = streamText({ model: openClient(streams)("weather"), tools, prompt, stopWhen: isStepCount(3) });
    const parts = await Array.fromAsync(stream);
    expect(parts.filter(({ type }) => type === "tool-call" || type === "tool-result")).toMatchObject([
      { toolCallId: "call_1", toolName: "get_weather", input: { city: "Bern" } },
      { toolCallId: "call_1", output: "sunny in Bern" },
    ]);
    expect(parts.at(-1)).toMatchObject({ type: "finish", finishReason: "stop" });
    expect(await streams.ended()).toHaveLength(2);
    expect(await streams.findings()).toEqual([]);
  });

  it("leaves a stream that it aborts, whose response goes on", async () => {
    const leaving = new AbortController();
    const asked = { prompt: "go", abortSignal: leaving.signal, includeRawChunks: true };
    const { stream } = streamText({ model: openClient()("slow"), ...asked });
    let created: Answered;
    const parts: string[] = [];
    for await (const part of stream) {
      parts.push(part.type);
      if (part.type === "raw") created ??= part.rawValue;
      if (part.type === "text-delta") leaving.abort();
    }
    expect(parts.at(-1)).toBe("abort");
    const retrieve = () => answered(ask({ url }, `GET /v1/responses/${created.response.id}`));
    await until(async () => (await retrieve()).status === "completed");
  });

  it("has why a run failed as its own error, by any provider and form, and asks once", async () => {
    const counting = { fetch: vi.fn(fetch) };
    const openAi = createOpenAI({ baseURL: `${url}/v1`, apiKey: keys.alice, ...counting });
    for (const model of [openClient(counting)("mute"), openAi("mute"), openAi.chat("mute")]) {
      counting.fetch.mockClear();
      const error = await generateText({ model, prompt }).catch((failure) => failure);
      expect(counting.fetch).toHaveBeenCalledOnce();
      expect(error).toMatchObject({
        message: expect.stringContaining("the model answered without"),
        isRetryable: false,
      });
    }
  });

  it("has its own error for a refusal, with the reason in it", async () => {
    const refusal = (key: string, model: string) =>
      generateText({ model: openClient({ apiKey: key })(model), prompt, maxRetries: 0 }).catch((error) => error);
    const unknown = await refusal(keys.alice, "nobody");
    expect(APICallError.isInstance(unknown)).toBe(true);
    expect(unknown).toMatchObject({
      statusCode: 404,
      isRetryable: false,
      data: { error: { code: "AGENT_NOT_FOUND", param: "model" } },
    });
    const strange = await refusal("no-key-of-anybody", "talker");
    expect(strange).toMatchObject({ statusCode: 401, data: { error: { type: "authentication_error", param: "" } } });
    expect(strange.message).toBe(strange.data.error.message);
  });
});
