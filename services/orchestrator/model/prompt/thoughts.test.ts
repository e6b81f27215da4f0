/** LOOP-11: what a provider wants back of its model's thoughts, through its own package. */

import type { ServerResponse } from "node:http";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { openProvider } from "../../testing/fakes/chat-server.ts";
import { openRun } from "../../testing/loop-run.ts";

type Event = { type: string } & Record<string, unknown>;

/** An answer of named events. */
const says = (events: Event[]) => (response: ServerResponse) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
};

async function askedOf(answers: Event[][], open: (baseURL: string) => LanguageModelV4, options?: JsonObject) {
  const provider = await openProvider(answers.map(says));
  const agent = { model: { provider: "@ai-sdk/openai", model: "gpt", ...(options && { options }) } };
  const run = await openRun({ turns: [], model: open(provider.url), agent, limits: { modelRetries: 0 } });
  await run.work();
  expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "It is 42." });
  return provider.asked.map(({ body }) => body);
}

describe("thoughts of a model", () => {
  const message = { id: "m", type: "message", role: "assistant", model: "claude", content: [], stop_reason: null };
  const usage = { input_tokens: 1, output_tokens: 1 };
  const block = (index: number, start: object, ...deltas: object[]): Event[] => [
    { type: "content_block_start", index, content_block: start },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
  const answer = (stop: string, ...blocks: Event[][]): Event[] => [
    { type: "message_start", message: { ...message, usage } },
    ...blocks.flat(),
    { type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 2 } },
    { type: "message_stop" },
  ];

  test("LOOP-11 go back to Anthropic's package with their signatures, redacted ones too, before the call that they led to", async () => {
    const calling = answer(
      "tool_use",
      block(
        0,
        { type: "thinking", thinking: "" },
        { type: "thinking_delta", thinking: "Twice " },
        { type: "thinking_delta", thinking: "21." },
        { type: "signature_delta", signature: "c2lnbmVk" },
      ),
      block(1, { type: "redacted_thinking", data: "aGlkZGVu" }),
      block(
        2,
        { type: "tool_use", id: "toolu_1", name: "double", input: {} },
        { type: "input_json_delta", partial_json: '{"value":21}' },
      ),
    );
    const done = answer("end_turn", block(0, { type: "text", text: "" }, { type: "text_delta", text: "It is 42." }));
    const [, second] = await askedOf([calling, done], (baseURL) => createAnthropic({ baseURL, apiKey: "k" })("claude"));
    expect(second?.messages).toMatchObject([
      { role: "user" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Twice 21.", signature: "c2lnbmVk" },
          { type: "redacted_thinking", data: "aGlkZGVu" },
          { type: "tool_use", id: "toolu_1", name: "double", input: { value: 21 } },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1" }] },
    ]);
  });

  const response = { id: "resp", created_at: 1, model: "gpt", service_tier: null };
  const item = (index: number, started: object, finished: object, ...between: Event[]): Event[] => [
    { type: "response.output_item.added", output_index: index, item: started },
    ...between,
    { type: "response.output_item.done", output_index: index, item: finished },
  ];
  const whole = (...items: Event[][]): Event[] => [
    { type: "response.created", response },
    ...items.flat(),
    {
      type: "response.completed",
      response: { ...response, usage: { input_tokens: 1, output_tokens: 2 }, incomplete_details: null },
    },
  ];

  test.each([
    [true, [{ type: "item_reference", id: "rs_1" }]],
    [false, [{ type: "reasoning", id: "rs_1", encrypted_content: "c2VjcmV0" }]],
  ])("LOOP-11 go back to OpenAI's package for responses before the call, stored there: %s", async (store, thoughts) => {
    const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: null };
    const called = { type: "function_call", id: "fc_1", call_id: "call_1", name: "double", arguments: '{"value":21}' };
    const argumentsDelta = { item_id: "fc_1", output_index: 1, delta: '{"value":21}' };
    const calling = whole(
      item(0, reasoning, { ...reasoning, encrypted_content: "c2VjcmV0" }),
      item(
        1,
        { ...called, arguments: "" },
        { ...called, status: "completed" },
        { type: "response.function_call_arguments.delta", ...argumentsDelta },
      ),
    );
    const said = { type: "message", id: "msg_1", role: "assistant" };
    const text = { type: "response.output_text.delta", item_id: "msg_1", delta: "It is 42." };
    const open = (baseURL: string) => createOpenAI({ baseURL, apiKey: "k" }).responses("gpt");
    const [, second] = await askedOf([calling, whole(item(0, said, said, text))], open, { store });
    expect(second?.input).toMatchObject([
      { role: "system" },
      { role: "user" },
      ...thoughts,
      { type: "function_call", call_id: "call_1", name: "double" },
      { type: "function_call_output", call_id: "call_1", output: "42" },
    ]);
  });
});
