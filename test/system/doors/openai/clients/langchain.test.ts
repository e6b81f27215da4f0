// LangChain's model for OpenAI, unmodified, by either form of the door.

import { type AIMessageChunk, HumanMessage, type ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
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

function openModel(model: string, options: { fetch?: typeof fetch; useResponsesApi?: boolean } = {}): ChatOpenAI {
  const { fetch, useResponsesApi = true } = options;
  const configuration = { baseURL: `${url}/v1`, ...(fetch && { fetch }) };
  return new ChatOpenAI({ model, apiKey: keys.alice, useResponsesApi, configuration });
}

const getWeather = tool(({ city }) => `sunny in ${city}`, {
  ...{ name: "get_weather", description: "Tells the weather", schema: z.object({ city: z.string() }) },
});
const question = new HumanMessage("How is the weather in Bern?");

/** The pieces of a stream as the one message that they are. */
async function joined(chunks: AsyncIterable<AIMessageChunk>): Promise<AIMessageChunk> {
  return (await Array.fromAsync(chunks)).reduce((whole, chunk) => whole.concat(chunk));
}

const forms = [
  ["responses", true],
  ["chat completions", false],
] as const;

describe.each(forms)("LOOP-18 LangChain by %s", (_, useResponsesApi) => {
  it("gets a text", async () => {
    const message = await openModel("talker", { useResponsesApi }).invoke("hello");
    expect(message.text).toBe("You said: hello");
    expect(message.usage_metadata).toMatchObject({ output_tokens: expect.any(Number) });
  });

  it("streams a text", async () => {
    const message = await joined(await openModel("talker", { useResponsesApi }).stream("hello"));
    expect(message.text).toBe("You said: hello");
  });

  it("calls its function, and brings the output with all that was said", async () => {
    const model = openModel("weather", { useResponsesApi }).bindTools([getWeather]);
    const called = await model.invoke([question]);
    expect(called.tool_calls).toMatchObject([{ name: "get_weather", args: { city: "Bern" }, id: "call_1" }]);
    const output: ToolMessage = await getWeather.invoke(called.tool_calls![0]!);
    expect((await model.invoke([question, called, output])).text).toBe("It is sunny in Bern.");
  });

  it("has the error of OpenAI's client for a refusal, with the reason as its code", async () => {
    const refused = openModel("nobody", { useResponsesApi }).invoke("x");
    await expect(refused).rejects.toMatchObject({
      ...{ status: 404, code: "AGENT_NOT_FOUND", param: "model" },
      lc_error_code: "MODEL_NOT_FOUND",
    });
  });

  it("has why a run failed as an error, and asks once", async () => {
    const counted = vi.fn(fetch);
    const failed = openModel("mute", { useResponsesApi, fetch: counted }).invoke("x");
    await expect(failed).rejects.toMatchObject({ status: 400, code: "empty_answer" });
    expect(counted).toHaveBeenCalledOnce();
  });
});

describe("LOOP-18 LangChain's streams", () => {
  it("of a call and of what follows its output are in order", async () => {
    const streams = recordStreams();
    const model = openModel("weather", streams).bindTools([getWeather]);
    const called = await joined(await model.stream([question]));
    expect(called.tool_calls).toMatchObject([{ name: "get_weather", args: { city: "Bern" }, id: "call_1" }]);
    const output: ToolMessage = await getWeather.invoke(called.tool_calls![0]!);
    const told = await joined(await model.stream([question, called, output]));
    expect(told.text).toBe("It is sunny in Bern.");
    expect(await streams.ended()).toHaveLength(2);
    expect(await streams.findings()).toEqual([]);
  });

  it("go on from an earlier response", async () => {
    const streams = recordStreams();
    const model = openModel("talker", streams);
    const { response_metadata: first } = await model.invoke("hello");
    const next = await joined(await model.stream("again", { previous_response_id: first.id as string }));
    expect(next.text).toBe("You said: again");
    const [events] = await streams.ended();
    expect(events?.at(-1)?.response).toMatchObject({ previous_response_id: first.id });
    expect(await streams.findings()).toEqual([]);
  });

  it("may be left by an abort, and the response goes on", async () => {
    const leaving = new AbortController();
    let id: unknown;
    const reading = async () => {
      for await (const chunk of await openModel("slow").stream("go", { signal: leaving.signal })) {
        id ??= chunk.response_metadata.id;
        if (chunk.text !== "") leaving.abort();
      }
    };
    await expect(reading()).rejects.toMatchObject({ name: "AbortError" });
    await until(async () => (await answered(ask({ url }, `GET /v1/responses/${id}`))).status === "completed");
  });
});
