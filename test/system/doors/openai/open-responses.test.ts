// What the official compliance suite of Open Responses asks of a response and its events, under the names of its tests; `socket/` has
// those of WebSockets.
// That suite holds answers against its schemas, too, which are not held here.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answered, ask, openResponsesDoor, toldBy } from "../fixtures/responses-door.ts";
import { findingsIn } from "../fixtures/stream-findings.ts";

const stack = new AsyncDisposableStack();
let here: { url: string };

beforeAll(async () => {
  here = { url: (await openResponsesDoor(stack)).suite.url };
}, 120_000);
afterAll(() => stack.disposeAsync());

const says = (role: string, content: unknown) => ({ type: "message", role, content });
const parameters = { type: "object", properties: { location: { type: "string" } }, required: ["location"] };
const tools = [{ type: "function", name: "get_weather", description: "Tells the weather", parameters }];
const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async function streamed(body: object) {
  const events = await Array.fromAsync(toldBy(await ask(here, "POST /v1/responses", { ...body, stream: true })));
  expect(findingsIn(events)).toEqual([]);
  return events;
}

describe("LOOP-18 compliance with Open Responses", () => {
  it.each([
    ["basic-response", [says("user", "Greet me.")]],
    ["system-prompt", [says("system", "Speak as a sailor."), says("user", "Greet me.")]],
    ["multi-turn", [says("user", "I am Eva."), says("assistant", "Welcome, Eva."), says("user", "Who am I?")]],
    [
      "image-input",
      [
        says("user", [
          { type: "input_text", text: "What is to be seen?" },
          { type: "input_image", image_url: pixel },
        ]),
      ],
    ],
  ])("%s", async (_, input) => {
    const response = await answered(ask(here, "POST /v1/responses", { model: "talker", input, stream: false }));
    expect(response).toMatchObject({ object: "response", status: "completed", error: null });
    expect(response.output.length).toBeGreaterThan(0);
  });

  it("streaming-response", async () => {
    const events = await streamed({ model: "talker", input: [says("user", "Count.")] });
    expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { status: "completed" } });
  });

  const asking = { model: "located", input: [says("user", "How is the weather in Bern?")], tools };

  it("tool-calling", async () => {
    const { output } = await answered(ask(here, "POST /v1/responses", { ...asking, stream: false }));
    expect(output).toContainEqual(expect.objectContaining({ type: "function_call", name: "get_weather" }));
  });

  it("tool-calling-streaming", async () => {
    const events = await streamed(asking);
    const item = expect.objectContaining({ type: "function_call" });
    for (const type of ["response.output_item.added", "response.output_item.done"])
      expect(events).toContainEqual(expect.objectContaining({ type, item }));
    for (const type of ["response.function_call_arguments.delta", "response.function_call_arguments.done"])
      expect(events).toContainEqual(expect.objectContaining({ type }));
  });
});
