// OpenAI's client for JavaScript, unmodified. What it is streamed is looked through for faults of order, numbers and shape.

import OpenAI from "openai";
import type { FunctionTool, ResponseInputItem, ResponseStreamEvent } from "openai/resources/responses/responses";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { keys, openResponsesDoor, type Told } from "../fixtures/responses-door.ts";
import { findingsIn } from "../fixtures/stream-findings.ts";

const stack = new AsyncDisposableStack();
let here: OpenAI;
let there: OpenAI;

beforeAll(async () => {
  const { suite, other } = await openResponsesDoor(stack);
  [here, there] = [suite, other].map(({ url }) => openClient(url)) as [OpenAI, OpenAI];
}, 120_000);
afterAll(() => stack.disposeAsync());

const openClient = (url: string) => new OpenAI({ baseURL: `${url}/v1`, apiKey: keys.alice, maxRetries: 0 });
const asTold = (events: readonly ResponseStreamEvent[]) => events as unknown as Told[];
const input = "How is the weather in Bern?";
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tool: FunctionTool = { type: "function", name: "get_weather", parameters, strict: false };

async function streamed(model: string, tools: FunctionTool[] = []): Promise<Told[]> {
  return asTold(await Array.fromAsync(await here.responses.create({ model, input, tools, stream: true })));
}

describe("LOOP-18 OpenAI's client for JavaScript", () => {
  it("gets a text", async () => {
    const response = await here.responses.create({ model: "talker", input: "hello" });
    expect(response).toMatchObject({ status: "completed", output_text: "You said: hello" });
  });

  it("streams, and puts the response together of the events", async () => {
    const events: ResponseStreamEvent[] = [];
    const stream = here.responses.stream({ model: "talker", input: "hello" });
    for await (const event of stream) events.push(event);
    const { id, output_text: text } = await stream.finalResponse();
    expect(text).toBe("You said: hello");
    expect(await there.responses.retrieve(id)).toMatchObject({ id, output_text: text });
  });

  it("is told by a stream that its run failed", async () => {
    const stream = await here.responses.create({ model: "mute", input, stream: true });
    await expect(Array.fromAsync(stream)).rejects.toMatchObject({ code: "empty_answer", type: "model_error" });
  });

  it("calls its function, and brings the output", async () => {
    const events = await streamed("weather", [tool]);
    expect(findingsIn(events)).toEqual([]);
    const { id, output } = events.at(-1)?.response ?? {};
    const call = output.at(-1);
    expect(call).toMatchObject({ type: "function_call", name: "get_weather", arguments: '{"city":"Bern"}' });
    const answer: ResponseInputItem = { type: "function_call_output", call_id: call.call_id, output: "sunny" };
    const next = { model: "weather", tools: [tool], previous_response_id: id, input: [answer] };
    expect(await here.responses.create(next)).toMatchObject({ output_text: "It is sunny." });
  });

  it("resumes at another gateway what it left, and has the whole without a fault", async () => {
    const seen: ResponseStreamEvent[] = [];
    for await (const event of await here.responses.create({ model: "slow", input: "go", stream: true })) {
      seen.push(event);
      if (seen.length === 10) break;
    }
    const [first] = seen;
    if (first?.type !== "response.created") throw new Error(`It begins with ${first?.type}.`);
    const after = { stream: true, starting_after: seen.at(-1)!.sequence_number } as const;
    const rest = await Array.fromAsync(await there.responses.retrieve(first.response.id, after));
    expect(rest.length).toBeGreaterThan(0);
    expect(findingsIn(asTold([...seen, ...rest]))).toEqual([]);
  });

  it("cancels what runs in the background", async () => {
    const { id } = await here.responses.create({ model: "slow", input: "go", background: true });
    await there.responses.cancel(id);
    const events = asTold(await Array.fromAsync(await here.responses.retrieve(id, { stream: true })));
    expect(findingsIn(events)).toEqual([]);
    expect(await here.responses.retrieve(id)).toMatchObject({ id, status: "cancelled" });
  });

  it("has its own error for a refusal, with the reason as its code", async () => {
    const refused = here.responses.create({ model: "nobody", input: "x" });
    await expect(refused).rejects.toThrow(OpenAI.NotFoundError);
    await expect(refused).rejects.toMatchObject({ status: 404, code: "AGENT_NOT_FOUND", param: "model" });
    const strange = here.withOptions({ apiKey: "no-key-of-anybody" }).models.list();
    await expect(strange).rejects.toThrow(OpenAI.AuthenticationError);
  });
});

describe("LOOP-18 a stream of a response", () => {
  it.each([
    ["talker", []],
    ["weather", [tool]],
    ["both", [tool]],
    ["careless", [tool]],
  ] as const)("of the agent %s is in order, and would not be without any one of its events", async (model, tools) => {
    const events = await streamed(model, [...tools]);
    expect(findingsIn(events)).toEqual([]);
    for (const { sequence_number: missing, type } of events) {
      // An event of progress that no other refers to may be left out.
      if (/mcp_call\.|delta$/.test(type) && (events[missing]?.delta ?? "") === "") continue;
      const rest = events
        .filter((event) => event !== events[missing])
        .map((event, n) => ({ ...event, sequence_number: n }));
      expect.soft(findingsIn(rest), `without ${type}`).not.toEqual([]);
    }
    expect(findingsIn(events.toReversed().map((event, n) => ({ ...event, sequence_number: n })))).not.toEqual([]);
  });
});
