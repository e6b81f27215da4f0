import { expect, test } from "vitest";
import { openProvider, stream } from "../../../testing/fakes/chat-server.ts";
import { openRun } from "../../../testing/loop-run.ts";
import { createModelSource } from "../model-source.ts";

const thinking = { type: "thinking", thinking: [{ type: "text", text: "hm" }] };
const said = { type: "text", text: "Let me see." };
const calls = [{ index: 0, id: "a", type: "function", function: { name: "double", arguments: '{"value":1}' } }];

test.each<[string, object[], object]>([
  ["reasoning_content", [{ reasoning_content: "hm" }], { content: null, reasoning_content: "hm" }],
  ["reasoning", [{ reasoning: "h" }, { reasoning: "m" }], { content: null, reasoning: "hm" }],
  ["both", [{ reasoning: "hm", reasoning_content: "hm" }], { content: null, reasoning_content: "hm" }],
  ["parts of the content", [{ content: [thinking] }, { content: [said] }], { content: [thinking, said] }],
])("LOOP-11 thoughts that come as %s go back so, and as nothing else", async (_, deltas, told) => {
  const calling = stream([...deltas, { tool_calls: calls }], "tool_calls");
  const provider = await openProvider([calling, stream([{ content: "whole" }])]);
  const modelOf = createModelSource({ openaiBaseUrl: provider.url, scripts: ".", modules: new Map() });
  const config = { provider: "openai-compatible", model: "tiny" };
  const model = modelOf({ ...config, $typeName: "toolbus.agent.v1.Model", contextWindow: 0 });
  const run = await openRun({ turns: [], model, agent: { model: config } });
  await run.work();
  const { messages } = provider.asked[1]!.body as { messages: object[] };
  expect(messages[2]).toEqual({ role: "assistant", ...told, tool_calls: [expect.objectContaining({ id: "a" })] });
});
