// Tools in responses: those of the client, and those of the agent.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answered, answered, ask, openResponsesDoor, toldBy } from "../fixtures/responses-door.ts";
import { openWorkServer } from "../fixtures/work-server.ts";

const stack = new AsyncDisposableStack();
let here: { url: string };

beforeAll(async () => {
  here = { url: (await openResponsesDoor(stack)).suite.url };
}, 120_000);
afterAll(() => stack.disposeAsync());

const create = (body: object) => answered(ask(here, "POST /v1/responses", body));
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tool = { type: "function", name: "get_weather", description: "Tells the weather", parameters, strict: true };
const far = { type: "mcp", server_label: "far", server_url: "https://example.com" };
const input = "How is the weather in Bern?";
const textOf = ({ output }: Answered) => output.at(-1).content[0].text;
const outputOf = (call: Answered, output = "sunny") => ({
  type: "function_call_output",
  call_id: call.call_id,
  output,
});

describe("LOOP-18 a function of the client", () => {
  it("is called by an item that completes the response, and answered in the next", async () => {
    const first = await create({ model: "weather", input, tools: [tool] });
    expect(first).toMatchObject({ status: "completed", tools: [{ ...tool, strict: null }], tool_choice: "auto" });
    const call = first.output.at(-1);
    expect(call).toMatchObject({ type: "function_call", name: "get_weather", arguments: '{"city":"Bern"}' });
    const next = await create({
      ...{ model: "weather", tools: [tool] },
      ...{ previous_response_id: first.id, input: [outputOf(call)] },
    });
    expect(textOf(next)).toBe("It is sunny.");
    const { data } = await answered(ask(here, `GET /v1/responses/${next.id}/input_items`));
    expect(data).toMatchObject([{ ...outputOf(call), status: "completed" }]);
  });

  it("streams its arguments, and the last event carries the call", async () => {
    const stream = await ask(here, "POST /v1/responses", { model: "weather", input, tools: [tool], stream: true });
    const events = await Array.fromAsync(toldBy(stream));
    const deltas = events.filter(({ type }) => type === "response.function_call_arguments.delta");
    expect(deltas.map(({ delta }) => delta).join("")).toBe('{"city":"Bern"}');
    expect(events.at(-1)).toMatchObject({
      type: "response.completed",
      response: { output: [{}, { type: "function_call" }] },
    });
  });

  it("is called and answered by clients that send all that was said", async () => {
    const { output } = await create({ model: "weather", input, tools: [tool], store: false });
    const history = [{ role: "user", content: input }, ...output, outputOf(output.at(-1))];
    const next = await create({ model: "weather", input: history, tools: [tool], store: false });
    expect(textOf(next)).toBe("It is sunny.");
    expect(next).toMatchObject({ store: false, previous_response_id: null });
  });

  it("stands beside calls of the agent's tools, which are executed", async () => {
    const first = await create({ model: "both", input, tools: [tool] });
    expect(first.output).toMatchObject([
      { type: "mcp_call", server_label: "both", name: "get_plans", status: "completed", error: null },
      { type: "function_call", name: "get_weather" },
    ]);
    const answer = { previous_response_id: first.id, input: [outputOf(first.output.at(-1))] };
    expect(textOf(await create({ model: "both", tools: [tool], ...answer }))).toBe("It is sunny.");
  });

  it("is answered by clients that refer to the items of before, each once", async () => {
    const first = await create({ model: "weather", input, tools: [tool] });
    const [mine, call] = first.output.map(({ id }: Answered) => ({ type: "item_reference", id }));
    const history = [{ role: "user", content: input }, mine, mine, call, outputOf(first.output.at(-1))];
    const next = await create({ model: "weather", input: history, tools: [tool] });
    expect(textOf(next)).toBe("It is sunny.");
    const { data } = await answered(ask(here, `GET /v1/responses/${next.id}/input_items?order=asc`));
    const types = ["message", "message", "function_call", "function_call_output"];
    expect(data.map(({ type }: Answered) => type)).toEqual(types);
  });

  it("is answered with images and files, which the model is shown behind all outputs, texts as text", async () => {
    const input_image = (image_url: string) => ({ type: "input_image", image_url, detail: "auto" });
    const png = "data:image/png;base64,iVBORw0KGgo=";
    const far = "https://example.com/a.png";
    const words = { type: "input_file", filename: "a.txt", file_data: btoa("words") };
    const outputs = [
      { call_id: "call_1", output: [{ type: "input_text", text: "A map:" }, input_image(png), words] },
      { call_id: "call_2", output: [input_image(far)] },
    ].map((output) => ({ type: "function_call_output", ...output }));
    const calls = outputs.map(({ call_id }) => ({ type: "function_call", call_id, name: "look", arguments: "{}" }));
    const said = [{ role: "user", content: "Look." }, ...calls, ...outputs];
    const response = await create({ model: "prompted", input: [...said, { role: "user", content: "Well?" }] });
    const [results, files, last] = JSON.parse(textOf(response)).slice(-3);
    const mark = (n: number) => `[File ${n}: in the message behind the outputs]`;
    expect(results.content.map(({ output }: Answered) => output.value)).toEqual([
      `A map:\n${mark(1)}\n[File a.txt]\nwords`,
      mark(2),
    ]);
    expect(files).toMatchObject({
      role: "user",
      content: [
        { type: "file", mediaType: "image/png", data: { type: "data", data: "iVBORw0KGgo=" } },
        { type: "file", mediaType: "image/*", data: { type: "url", url: far } },
      ],
    });
    expect(last).toMatchObject({ role: "user", content: [{ text: "Well?" }] });
    const next = await create({ model: "prompted", input: said });
    expect(JSON.parse(textOf(next)).at(-1), "also at the end").toEqual(files);
    const kept = await create({
      model: "prompted",
      input: [{ ...outputs[0], output: [{ type: "input_image", file_id: "f" }] }],
    });
    expect(kept.error).toMatchObject({ param: "input[0].output[0].image_url" });
  });

  it("cannot be referred to where its response was not to be stored", async () => {
    const { output } = await create({ model: "both", input, tools: [tool], store: false });
    const history = [
      { role: "user", content: input },
      { type: "item_reference", id: output[0].id },
    ];
    const { error } = await create({ model: "both", input: history });
    expect(error).toMatchObject({
      type: "not_found",
      param: "input[1]",
      message: expect.stringContaining(output[0].id),
    });
  });

  it("is not handed out with arguments that do not fit: the model is told", async () => {
    const response = await create({ model: "careless", input, tools: [tool] });
    expect(response).toMatchObject({ status: "completed", output: [{ type: "mcp_call", status: "failed" }, {}] });
    expect(textOf(response)).toBe("Never mind.");
    const [failed] = response.output;
    expect(failed.error, "as clients have it").toMatchObject({ type: "mcp_tool_execution_error" });
    const [{ text }] = failed.error.content;
    const known = [failed.error, text, { type: "mcp_protocol_error", code: -32_602, message: text }];
    for (const error of known) {
      const history = [
        { role: "user", content: "hi" },
        { ...failed, error },
      ];
      const told = await create({ model: "reported", input: history });
      expect(JSON.parse(textOf(told))).toEqual({ error: text });
    }
  });

  it("has an object as its arguments where the model gave none, as clients read them as JSON", async () => {
    const given = { type: "function", name: "get_time", parameters: { type: "object", properties: {} } };
    const { output } = await create({ model: "bare", input, tools: [given] });
    expect(output.map((item: { arguments: string }) => item.arguments)).toEqual(["{}", "{}"]);
    const executed = await create({ model: "bare", input });
    expect(executed.output).toMatchObject([{ type: "mcp_call", arguments: "{}" }, { arguments: "{}" }, {}]);
  });
});

it("LOOP-18 functions of a namespace, as Codex has them, are called by namespace and name", async () => {
  const { name: _, ...own } = tool;
  const namespace = { type: "namespace", name: "get", description: "Looks", tools: [{ ...own, name: "weather" }] };
  const asked = { model: "grouped", input: [{ role: "user", content: input }], tools: [namespace] };
  const { output } = await create(asked);
  expect(output).toMatchObject([{ type: "function_call", namespace: "get", name: "weather" }]);
  const again = await create({ ...asked, input: [...asked.input, ...output, outputOf(output[0])] });
  expect(textOf(again)).toBe("It is sunny.");
});

it("LOOP-18 an MCP server of the request is called for it, and for no other", async () => {
  await using work = await openWorkServer();
  const server = { type: "mcp", server_label: "work", server_url: work.url, require_approval: "never" };
  const choice = { type: "mcp", server_label: "work", name: "work" };
  const response = await create({ model: "borrower", input, tools: [server], tool_choice: choice });
  expect(response).toMatchObject({ tools: [server], tool_choice: choice, status: "completed" });
  expect(response.output[0]).toMatchObject({ ...choice, type: "mcp_call", output: "ab ab " });
  const without = await create({ model: "borrower", input, previous_response_id: response.id });
  expect(without.output[0]).toMatchObject({ type: "mcp_call", status: "failed" });
});

describe("LOOP-18 tool_choice", () => {
  it("forbids, narrows or forces, and is told again", async () => {
    const none = await create({ model: "weather", input, tools: [tool], tool_choice: "none" });
    expect(none).toMatchObject({ tool_choice: "none", status: "completed" });
    expect(none.output.some(({ type }: Answered) => type === "function_call")).toBe(false);
    const force = { type: "function", name: "get_weather" };
    const forced = await create({ model: "weather", input, tools: [tool], tool_choice: force });
    expect(forced).toMatchObject({ tool_choice: force, output: [{}, { type: "function_call" }] });
    const narrow = { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "get_plans" }] };
    const narrowed = await create({ model: "weather", input, tools: [tool], tool_choice: narrow });
    expect(narrowed).toMatchObject({ tool_choice: narrow, output: [{}, { type: "mcp_call", status: "failed" }, {}] });
  });

  it("LOOP-3 stands beside allowed_tools, which narrows as well; an empty list narrows nothing", async () => {
    const allowing = (allowed_tools: string[]) => create({ model: "weather", input, tools: [tool], allowed_tools });
    const refused = [{}, { type: "mcp_call", status: "failed" }, {}];
    expect(await allowing(["get_plans"])).toMatchObject({ tool_choice: { type: "allowed_tools" }, output: refused });
    expect((await allowing([])).output.at(-1)).toMatchObject({ type: "function_call", name: "get_weather" });
    const unknown = { param: "allowed_tools", message: expect.stringContaining("nothing") };
    expect((await allowing(["nothing"])).error).toMatchObject(unknown);
  });

  it.each([
    [{ tool_choice: { type: "function", name: "nothing" } }, "nothing", "tool_choice"],
    [{ tools: [tool, tool] }, "get_weather", "tools"],
    [{ tools: [{ ...tool, parameters: { type: "nothing" } }] }, "function_tools[0]", "tools"],
    [{ tools: [{ type: "web_search" }] }, "an agent has its own tools"],
    [{ tools: [far] }, "never"],
    [{ tools: [{ ...far, server_label: "my server", require_approval: "never" }] }, "a-z", "tools[0].server_label"],
    [{ input: [outputOf({ call_id: "call_9" })] }, "call_9"],
    [{ background: true, store: false }, "stored", "background"],
    [{ top_logprobs: 2 }, "log probabilities"],
    [{ include: ["reasoning.encrypted_content", "message.output_text.logprobs"] }, "log probabilities"],
    [{ input: [{ type: "item_reference", id: "msg_1" }] }, "previous_response_id"],
    [{ allowed_tools: ["get_plans"], tool_choice: { type: "allowed_tools", tools: [] } }, "tool_choice"],
    [{ metadata: { "toolbus.response": "x" } }, "toolbus."],
  ])("of what there is not is refused by name: %j", async (more, words, param = expect.any(String)) => {
    const { error } = await create({ model: "weather", input, ...more });
    const code = expect.stringMatching(/^[A-Z_]+$/);
    expect(error).toMatchObject({ code, param, message: expect.stringContaining(words) });
  });
});

it("LOOP-18 instructions stand behind the agent's, and those of the input hold for what goes on from it", async () => {
  const system = [{ role: "system", content: "Speak like a pirate." }];
  const first = await create({
    model: "prompted",
    instructions: "Be brief.",
    input: [...system, { role: "user", content: "hi" }],
    metadata: { topic: "pirates" },
  });
  expect(first).toMatchObject({ instructions: "Be brief.", metadata: { topic: "pirates" } });
  const [{ content }] = JSON.parse(textOf(first));
  expect(content).toMatch(/^You help\.(.|\n)*\n\nSpeak like a pirate\.\n\nBe brief\.$/);
  const next = await create({ model: "prompted", previous_response_id: first.id, input: "and?" });
  expect(JSON.parse(textOf(next))[0].content).toMatch(/Speak like a pirate\.$/);
  const listed = await answered(ask(here, `GET /v1/responses/${first.id}/input_items?order=asc`));
  expect(listed).toMatchObject({
    has_more: false,
    data: [{ role: "system" }, { role: "user", content: [{ text: "hi" }] }],
  });
});

it("LOOP-18 images and files of the input are shown to the model, texts as text, and told again", async () => {
  const png = "data:image/png;base64,iVBORw0KGgo=";
  const content = [
    { type: "input_text", text: "What is it?" },
    { type: "input_image", image_url: png, detail: "auto" },
    { type: "input_image", image_url: "https://example.com/a.png", detail: "auto" },
    { type: "input_file", filename: "a.txt", file_data: `data:text/plain;base64,${btoa("words")}` },
  ];
  const response = await create({ model: "prompted", input: [{ role: "user", content }] });
  expect(JSON.parse(textOf(response)).at(-1).content).toEqual([
    { type: "text", text: "What is it?" },
    { type: "file", mediaType: "image/png", data: { type: "data", data: "iVBORw0KGgo=" } },
    { type: "file", mediaType: "image/*", data: { type: "url", url: "https://example.com/a.png" } },
    { type: "text", text: "[File a.txt]\nwords" },
  ]);
  const { data } = await answered(ask(here, `GET /v1/responses/${response.id}/input_items`));
  expect(data[0].content.slice(0, 3)).toEqual(content.slice(0, 3));
  const kept = await create({
    model: "prompted",
    input: [{ role: "user", content: [{ type: "input_image", file_id: "f" }] }],
  });
  expect(kept.error).toMatchObject({
    param: "input[0].content[0].image_url",
    message: expect.stringContaining("not kept"),
  });
});

it("LOOP-18 what is asked of the model is told again", async () => {
  const format = { type: "json_schema", name: "answer", schema: { type: "object" } };
  const asked = { temperature: 0.5, top_p: 0.9, max_output_tokens: 1_000, reasoning: { effort: "low" } };
  const changeNothing = { top_logprobs: 0, include: ["reasoning.encrypted_content"] };
  const body = { model: "talker", input: "hi", ...asked, ...changeNothing, text: { format }, background: true };
  const response = await create(body);
  const told = { ...asked, reasoning: { effort: "low", summary: null }, background: true, text: { format } };
  expect(response).toMatchObject(told);
  const { error } = await create({ model: "talker", input: "hi", temperature: 3 });
  expect(error).toMatchObject({ param: "temperature", code: "INVALID_REQUEST" });
});

it("LOOP-18 a conversation is compacted, and goes on from what came of it", async () => {
  const input = [
    { role: "user", content: "The word is slate." },
    { role: "assistant", content: "OK." },
  ];
  const compacted = await answered(ask(here, "POST /v1/responses/compact", { model: "talker", input }));
  expect(compacted).toMatchObject({ object: "response.compaction", output: [{ type: "compaction" }] });
  const next = await create({ model: "prompted", input: [...compacted.output, { role: "user", content: "Go on." }] });
  expect(textOf(next)).toMatch(/\[Summary of the conversation so far\]\\nYou said: Summarize/);
  const { error } = await answered(ask(here, "POST /v1/responses/compact", { input }));
  expect(error).toMatchObject({ param: "model" });
});

it("LOOP-18 what was not to be stored is neither told again nor continued", async () => {
  const { id } = await create({ model: "talker", input: "hi", store: false });
  for (const path of [`GET /v1/responses/${id}`, `GET /v1/responses/${id}/input_items`])
    expect(await answered(ask(here, path))).toMatchObject({ error: { code: "RUN_NOT_FOUND" } });
  const next = await create({ model: "talker", input: "and?", previous_response_id: id });
  expect(next).toMatchObject({ error: { code: "previous_response_not_found", param: "previous_response_id" } });
});
