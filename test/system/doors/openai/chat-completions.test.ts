// An agent for clients of OpenAI's Chat Completions, by hand.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventsOf } from "../fixtures/clients.ts";
import { type Answered, answered, ask, openResponsesDoor } from "../fixtures/responses-door.ts";

const stack = new AsyncDisposableStack();
let here: { url: string };
let there: { url: string };

beforeAll(async () => {
  const { suite, other } = await openResponsesDoor(stack);
  [here, there] = [{ url: suite.url }, { url: other.url }];
}, 120_000);
afterAll(() => stack.disposeAsync());

const path = "POST /v1/chat/completions";
const user = (content: unknown) => ({ role: "user", content });
const complete = (body: object) => answered(ask(here, path, body));
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tool = { type: "function", function: { name: "get_weather", description: "Tells the weather", parameters } };
const weather = { model: "weather", messages: [user("How is the weather in Bern?")], tools: [tool] };
const call = { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Bern"}' } };
const chunk = (delta: object, finish: string | null = null) => ({
  id: expect.stringMatching(/^chatcmpl-[a-zA-Z0-9_-]+$/),
  object: "chat.completion.chunk",
  created: expect.any(Number),
  model: expect.any(String),
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
});

/** The data of a stream: chunks, and what stands at its end. */
async function streamed(body: object): Promise<{ chunks: Answered[]; end: string | undefined }> {
  const response = await ask(here, path, { ...body, stream: true });
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  const data = (await Array.fromAsync(eventsOf(response))).map((event) => event.data);
  const isDone = data.at(-1) === "[DONE]";
  return { chunks: data.slice(0, isDone ? -1 : undefined).map((text) => JSON.parse(text)), end: data.at(-1) };
}
const textOf = (chunks: Answered[]) => chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("");

describe("LOOP-18 a completion", () => {
  it("is one of the agent that the model names", async () => {
    const completion = await complete({ model: "talker", messages: [user("hello there")] });
    expect(completion).toStrictEqual({
      id: expect.stringMatching(/^chatcmpl-[a-zA-Z0-9_-]+$/),
      object: "chat.completion",
      created: expect.any(Number),
      model: "talker",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "You said: hello there", refusal: null },
          logprobs: null,
          finish_reason: "stop",
        },
      ],
      usage: {
        prompt_tokens: expect.any(Number),
        prompt_tokens_details: { cached_tokens: 0 },
        completion_tokens: expect.any(Number),
        completion_tokens_details: { reasoning_tokens: 0 },
        total_tokens: expect.any(Number),
      },
    });
    const { prompt_tokens: given, completion_tokens: said, total_tokens: total } = completion.usage;
    expect([given > 0, said > 0, total]).toEqual([true, true, given + said]);
  });

  it("is streamed in chunks, with its usage where that is asked for, and ends with [DONE]", async () => {
    const { chunks, end } = await streamed({ model: "talker", messages: [user("hello there")] });
    expect(end).toBe("[DONE]");
    expect(chunks[0]).toStrictEqual(chunk({ role: "assistant", content: "", refusal: null }));
    for (const told of chunks.slice(1, -1)) expect(told).toStrictEqual(chunk({ content: expect.any(String) }));
    expect(chunks.at(-1)).toStrictEqual(chunk({}, "stop"));
    expect(textOf(chunks)).toBe("You said: hello there");
    expect(new Set(chunks.map(({ id, created }) => `${id} ${created}`)).size).toBe(1);
    const asked = { model: "talker", messages: [user("hello there")], stream_options: { include_usage: true } };
    const { chunks: counted } = await streamed(asked);
    const { choices: _, ...head } = chunk({});
    expect(counted.at(-1)).toStrictEqual({ ...head, choices: [], usage: expect.objectContaining({}) });
    expect(counted.at(-1).usage.total_tokens).toBeGreaterThan(0);
    expect(counted.slice(0, -1).map(({ usage }) => usage)).toEqual(counted.slice(1).map(() => null));
    expect(counted.at(-2)).toStrictEqual({ ...chunk({}, "stop"), usage: null });
  });

  it("says that it was cut off, by either name of the limit", async () => {
    const asked = { model: "talker", messages: [user("one two three four")] };
    for (const limit of ["max_tokens", "max_completion_tokens"]) {
      const { choices } = await complete({ ...asked, [limit]: 2 });
      expect(choices[0].finish_reason).toBe("length");
      expect("You said: one two three four".startsWith(choices[0].message.content)).toBe(true);
    }
    const { chunks, end } = await streamed({ ...asked, max_tokens: 2 });
    expect([chunks.at(-1), end]).toStrictEqual([chunk({}, "length"), "[DONE]"]);
  });

  it("ends before what it is to stop at, one text or several", async () => {
    const asked = { model: "talker", messages: [user("one two three")] };
    for (const stop of [" two", ["x", " two", "ree"]]) {
      const { choices } = await complete({ ...asked, stop });
      expect(choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "You said: one" } });
    }
  });

  it("is one for one idempotency key, at any gateway", async () => {
    const headers = { "idempotency-key": "one completion" };
    const body = { model: "talker", messages: [user("once")] };
    const [one, two] = await Promise.all([here, there].map(({ url }) => answered(ask({ url, headers }, path, body))));
    expect(one).toStrictEqual(two);
    const gone = await answered(ask(here, `GET /v1/responses/${one.id.replace("chatcmpl-", "resp_")}`));
    expect(gone).toMatchObject({ error: { code: "RUN_NOT_FOUND" } });
  });

  it.each([
    [[{ role: "system", content: "Greet." }], "[Begin, by your instructions]"],
    [[user(""), user([])], "[Begin, by your instructions]"],
    [[user("hi"), user(" ")], "hi"],
  ])("begins where nobody says anything, and passes over messages of nothing: %j", async (messages, last) => {
    const { choices } = await complete({ model: "talker", messages });
    expect(choices[0].message.content).toBe(`You said: ${last}`);
  });

  it("shows the model what was said, by whom, with images and files", async () => {
    const png = "data:image/png;base64,iVBORw0KGgo=";
    const { choices } = await complete({
      model: "prompted",
      messages: [
        { role: "developer", content: [{ type: "text", text: "Be brief." }] },
        user("hi"),
        { role: "assistant", content: "Hello." },
        { role: "system", content: "Now rhyme." },
        user([
          { type: "text", text: "What is it?" },
          { type: "image_url", image_url: { url: png, detail: "low" } },
          { type: "file", file: { filename: "a.txt", file_data: `data:text/plain;base64,${btoa("words")}` } },
        ]),
      ],
    });
    const [system, ...said] = JSON.parse(choices[0].message.content);
    expect(system.content).toMatch(/^You help\.(.|\n)*Be brief\.$/);
    expect(said.map(({ role }: Answered) => role)).toEqual(["user", "assistant", "user", "user"]);
    expect(said[2].content).toMatchObject([{ text: expect.stringContaining("Now rhyme.") }]);
    expect(said[3].content).toEqual([
      { type: "text", text: "What is it?" },
      { type: "file", mediaType: "image/png", data: { type: "data", data: "iVBORw0KGgo=" } },
      { type: "text", text: "[File a.txt]\nwords" },
    ]);
  });
});

describe("LOOP-18 a function of the client in a completion", () => {
  it("is called by it, and answered by a message of the next", async () => {
    const { choices } = await complete(weather);
    expect(choices[0]).toStrictEqual({
      ...{ index: 0, logprobs: null, finish_reason: "tool_calls" },
      message: { role: "assistant", content: "I look.", refusal: null, tool_calls: [call] },
    });
    const answer = { role: "tool", tool_call_id: call.id, content: [{ type: "text", text: "sunny" }] };
    const next = await complete({ ...weather, messages: [...weather.messages, choices[0].message, answer] });
    expect(next.choices[0]).toMatchObject({ finish_reason: "stop", message: { content: "It is sunny." } });
  });

  it("may answer nothing, or images", async () => {
    const url = "data:image/png;base64,iVBORw0KGgo=";
    const answeredBy = async (content: unknown, model = "prompted") => {
      const said = [user("Look."), { role: "assistant", tool_calls: [call] }];
      return complete({ model, messages: [...said, { role: "tool", tool_call_id: call.id, content }] });
    };
    expect((await answeredBy(null, "weather")).choices[0].message.content).toBe("It is .");
    const { choices } = await answeredBy([{ type: "image_url", image_url: { url } }]);
    const image = { type: "file", mediaType: "image/png", data: { type: "data", data: "iVBORw0KGgo=" } };
    expect(JSON.parse(choices[0].message.content).at(-1)).toEqual({ role: "user", content: [image] });
    const { error } = await answeredBy([{ type: "input_audio", input_audio: {} }]);
    expect(error).toMatchObject({ param: "messages[2].content[0].type" });
  });

  it("is streamed with its arguments", async () => {
    const { chunks, end } = await streamed({ ...weather, parallel_tool_calls: false });
    const calls = chunks.filter(({ choices }) => choices[0].delta.tool_calls);
    expect(calls[0]).toStrictEqual(
      chunk({ tool_calls: [{ index: 0, ...call, function: { name: "get_weather", arguments: "" } }] }),
    );
    for (const told of calls.slice(1))
      expect(told).toStrictEqual(chunk({ tool_calls: [{ index: 0, function: { arguments: expect.any(String) } }] }));
    const deltas = calls.map(({ choices }) => choices[0].delta.tool_calls[0].function.arguments);
    expect(deltas.join("")).toBe('{"city":"Bern"}');
    expect([textOf(chunks), chunks.at(-1), end]).toStrictEqual(["I look.", chunk({}, "tool_calls"), "[DONE]"]);
  });

  it("is forbidden, forced or one of those that are allowed", async () => {
    const allowed = { mode: "auto", tools: [tool] };
    const reasons = await Promise.all(
      [
        { type: "function", function: { name: "get_weather" } },
        "none",
        { type: "allowed_tools", allowed_tools: allowed },
      ].map(async (choice) => (await complete({ ...weather, tool_choice: choice })).choices[0].finish_reason),
    );
    expect(reasons).toEqual(["tool_calls", "stop", "tool_calls"]);
  });

  it("LOOP-3 is not handed out where allowed_tools leaves it out, nor are names taken that no tool has", async () => {
    const { choices } = await complete({ ...weather, allowed_tools: ["get_plans"] });
    expect(choices[0].finish_reason).toBe("stop");
    const response = await ask(here, path, { ...weather, allowed_tools: ["nothing"] });
    expect(await response.json()).toMatchObject({ error: { param: "allowed_tools" } });
  });

  it("may follow a text, which the next text follows as one", async () => {
    const { tools: _, ...without } = weather; // the agent is told that there is no such tool, and goes on
    const { choices } = await complete(without);
    expect(choices[0].message.content).toMatch(/^I look\.\n\nIt is /);
    expect(textOf((await streamed(without)).chunks)).toBe(choices[0].message.content);
  });
});

describe("LOOP-18 of a completion is refused", () => {
  it("a model that is no agent, by name", async () => {
    const response = await ask(here, path, { model: "nobody", messages: [user("x")], stream: true });
    expect(response.status).toBe(404);
    expect(await response.json()).toStrictEqual({
      error: {
        ...{ type: "not_found", code: "AGENT_NOT_FOUND", param: "model" },
        message: expect.stringContaining("nobody"),
      },
    });
  });

  const part = (given: object) => ({ messages: [{ role: "system", content: "x" }, user([given])] });
  it.each([
    [{ n: 2 }, "n", "one answer"],
    [{ logprobs: true }, "logprobs", "log probabilities"],
    [{ modalities: ["text", "audio"] }, "modalities[1]", "do not speak"],
    [{ audio: { voice: "alloy", format: "wav" } }, "audio", "do not speak"],
    [{ stop: 3 }, "stop", "list of texts"],
    [{ logit_bias: { 50256: -100 } }, "logit_bias", "bias"],
    [{ functions: [{ name: "f" }] }, "functions", "tools"],
    [{ tools: [{ type: "custom", custom: { name: "f" } }] }, "tools[0].type", "function"],
    [{ temperature: 3 }, "temperature", "2"],
    [{ max_tokens: 0 }, "max_tokens", "1"],
    [{ messages: [] }, "messages", "1"],
    [{ messages: [{ role: "function", name: "f", content: "x" }] }, "messages[0].role", "tool"],
    [part({ type: "input_audio", input_audio: {} }), "messages[1].content[0].type", "input_audio"],
    [part({ type: "image_url", image_url: { url: "ftp://a" } }), "messages[1].content[0].image_url", "https"],
    [part({ type: "file", file: { file_id: "f" } }), "messages[1].content[0].file.file_data", "not kept"],
    [{ metadata: { "toolbus.response": "x" } }, "metadata.toolbus.response", "toolbus."],
    [{ stream_options: { include_usage: true } }, "stream_options", "stream"],
  ])("what there is not, in words: %j", async (more, param, words) => {
    const { error } = await complete({ model: "talker", messages: [user("x")], ...more });
    expect(error).toStrictEqual({
      ...{ type: "invalid_request_error", code: "INVALID_REQUEST", param },
      message: expect.stringContaining(words),
    });
  });

  it("an answer to what was not called", async () => {
    const answer = { role: "tool", tool_call_id: "call_9", content: "x" };
    const { error } = await complete({ ...weather, messages: [...weather.messages, answer] });
    expect(error).toMatchObject({ code: "CALL_NOT_FOUND", message: expect.stringContaining("call_9") });
  });

  it("what is asked for elsewhere", async () => {
    const response = await ask(here, "GET /v1/chat/completions");
    const told = [response.status, response.headers.get("allow"), await response.json()];
    expect(told).toMatchObject([405, "POST", { error: { code: "PROTOCOL_UNSUPPORTED" } }]);
    for (const path of ["GET /v1/chat/nothing", "POST /v1/embeddings"]) {
      const nowhere = await ask(here, path);
      const error = { code: "PATH_NOT_FOUND", message: expect.stringContaining("agents answer at /v1/responses") };
      expect([nowhere.status, await nowhere.json()]).toMatchObject([404, { error }]);
    }
  });
});

it("LOOP-18 a run that fails is told as an error, which clients do not try again", async () => {
  const asked = { model: "mute", messages: [user("say something")] };
  const response = await ask(here, path, asked);
  expect([response.status, response.headers.get("x-should-retry")]).toEqual([400, "false"]);
  expect(response.headers.get("x-request-id"), "the run, of which the body does not tell").toMatch(/^run_/);
  const { error } = (await response.json()) as Answered;
  expect(error).toMatchObject({ type: "model_error", code: "empty_answer", param: "" }); // opencode repeats "server_error"
  const { chunks, end } = await streamed(asked);
  expect(chunks.at(-1)).toStrictEqual({ error });
  expect(end).not.toBe("[DONE]");
});
