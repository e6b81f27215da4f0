// OpenAI's Agents SDK, unmodified: its loop with functions of its own, around an agent of the suite.

import { Agent, OpenAIProvider, Runner, tool } from "@openai/agents";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { until } from "#runtime/time/until.ts";
import { recordStreams } from "../../fixtures/recorded-streams.ts";
import { answered, ask, keys, openResponsesDoor } from "../../fixtures/responses-door.ts";

const stack = new AsyncDisposableStack();
let url: string;

beforeAll(async () => {
  url = (await openResponsesDoor(stack)).suite.url;
}, 120_000);
afterAll(() => stack.disposeAsync());

function openRunner(options: { fetch?: typeof fetch } = {}): Runner {
  const openAIClient = new OpenAI({ baseURL: `${url}/v1`, apiKey: keys.alice, maxRetries: 0, ...options });
  return new Runner({ modelProvider: new OpenAIProvider({ openAIClient }), tracingDisabled: true });
}

const getWeather = tool({
  ...{ name: "get_weather", description: "Tells the weather", parameters: z.object({ city: z.string() }) },
  execute: ({ city }) => `sunny in ${city}`,
});
const agentOf = (model: string) => new Agent({ name: model, model });
const weather = new Agent({ name: "weather", model: "weather", tools: [getWeather] });
const input = "How is the weather in Bern?";

describe("LOOP-18 OpenAI's Agents SDK", () => {
  it("gets a text, and what it used", async () => {
    const result = await openRunner().run(agentOf("talker"), "hello");
    expect(result.finalOutput).toBe("You said: hello");
    expect(result.runContext.usage.outputTokens).toBeGreaterThan(0);
  });

  it("streams a text", async () => {
    const streams = recordStreams();
    const result = await openRunner(streams).run(agentOf("talker"), "hello", { stream: true });
    expect((await Array.fromAsync(result.toTextStream())).join("")).toBe("You said: hello");
    expect(result.finalOutput).toBe("You said: hello");
    expect(await streams.findings()).toEqual([]);
  });

  it("calls its function, and brings the output with all that was said", async () => {
    expect((await openRunner().run(weather, input)).finalOutput).toBe("It is sunny in Bern.");
  });

  it("brings an image of its function, behind which the model goes on", async () => {
    const image = "data:image/png;base64,iVBORw0KGgo=";
    const show = tool({
      ...{ name: "get_weather", description: "Tells the weather", parameters: z.object({ city: z.string() }) },
      execute: () => [
        { type: "text", text: "sunny" },
        { type: "image", image },
      ],
    });
    const result = await openRunner().run(new Agent({ name: "weather", model: "weather", tools: [show] }), input);
    expect(result.finalOutput).toMatch(/^It is sunny\n\[File 1/);
    const { data } = await answered(ask({ url }, `GET /v1/responses/${result.lastResponseId}/input_items`));
    expect(data[0]).toMatchObject({ role: "user", content: [{ type: "input_image", image_url: image }] });
  });

  it("streams the call of its function, and what follows its output", async () => {
    const streams = recordStreams();
    const result = await openRunner(streams).run(weather, input, { stream: true });
    const events = await Array.fromAsync(result);
    const names = events.flatMap((event) => (event.type === "run_item_stream_event" ? [event.name] : []));
    expect(names).toEqual(expect.arrayContaining(["tool_called", "tool_output"]));
    expect(result.finalOutput).toBe("It is sunny in Bern.");
    expect(await streams.ended()).toHaveLength(2);
    expect(await streams.findings()).toEqual([]);
  });

  it("goes on from the last response", async () => {
    const { lastResponseId: previousResponseId } = await openRunner().run(agentOf("talker"), "hello");
    const next = await openRunner().run(agentOf("talker"), "again", { previousResponseId: previousResponseId! });
    expect(next.finalOutput).toBe("You said: again");
    const response = await answered(ask({ url }, `GET /v1/responses/${next.lastResponseId}`));
    expect(response).toMatchObject({ previous_response_id: previousResponseId });
  });

  it("leaves a stream that it aborts, whose response goes on", async () => {
    const leaving = new AbortController();
    const result = await openRunner().run(agentOf("slow"), "go", { stream: true, signal: leaving.signal });
    let id = "";
    for await (const event of result) {
      if (event.type !== "raw_model_stream_event") continue;
      if (event.data.type === "response_started") id = event.data.providerData?.response.id;
      if (event.data.type === "output_text_delta") leaving.abort();
    }
    expect(result.cancelled).toBe(true);
    await until(async () => (await answered(ask({ url }, `GET /v1/responses/${id}`))).status === "completed");
  });

  it("has its client's error for a refusal, with the reason as its code", async () => {
    const refused = openRunner().run(agentOf("nobody"), "x");
    await expect(refused).rejects.toThrow(OpenAI.NotFoundError);
    await expect(refused).rejects.toMatchObject({ status: 404, code: "AGENT_NOT_FOUND", param: "model" });
  });
});
