import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { openProvider, stream } from "../../../testing/fakes/chat-server.ts";
import { createFakeModel } from "../../../testing/fakes/fake-model.ts";
import { openRun } from "../../../testing/loop-run.ts";
import { createModelSource } from "../model-source.ts";

type Run = Awaited<ReturnType<typeof openRun>>;

async function openHttpRun(deltas: object[]) {
  const provider = await openProvider([stream(deltas, "tool_calls"), stream([{ content: "mended" }])]);
  const modelOf = createModelSource({ openaiBaseUrl: provider.url, scripts: ".", modules: new Map() });
  const config = { provider: "openai-compatible", model: "tiny" };
  const model = modelOf({ ...config, $typeName: "toolbus.agent.v1.Model", contextWindow: 0 });
  return { ...(await openRun({ turns: [], model, agent: { model: config } })), provider };
}

const openDirectRun = (parts: LanguageModelV4StreamPart[]) =>
  openRun({ turns: [], model: createFakeModel("odd", (_, n) => (n === 1 ? { parts } : { text: "mended" })) });

const delta = (index: number, id: string | undefined, called: object) => ({
  tool_calls: [{ index, ...(id !== undefined && { id }), function: called }],
});
const call = (toolCallId: string, toolName: string, input: string): LanguageModelV4StreamPart => ({
  type: "tool-call",
  toolCallId,
  toolName,
  input,
});

async function outcome(run: Run) {
  await run.work();
  expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "mended", turnCount: 2 });
  const results = await run.results();
  return results.map(({ result }) => (result?.isError ? JSON.parse(result.outputJson).error : result?.outputJson));
}

const nameless = "the call names no tool";
const twice = "two calls of one turn had the same id: only the first was executed";
const [one, two] = ['{"value":1}', '{"value":2}'];

describe("a call that a model gets wrong is an error for it, through the package for chat completions", () => {
  test.each<[string, object[], unknown[]]>([
    ["without a name", [delta(0, "a", { name: "", arguments: one })], [nameless]],
    [
      "without a name, its arguments in pieces",
      [delta(0, "a", { name: "", arguments: "" }), delta(0, undefined, { arguments: one })],
      [nameless],
    ],
    [
      "without a name, beside a good one",
      [delta(0, "a", { name: "double", arguments: one }), delta(1, "b", { name: " ", arguments: two })],
      ["2", nameless],
    ],
    [
      "whose name is blank further on, which is no fault",
      [delta(0, "a", { name: "double", arguments: '{"va' }), delta(0, "a", { name: "", arguments: 'lue":3}' })],
      ["6"],
    ],
    [
      "with the id of another, which the package tells apart by its place",
      [delta(0, "a", { name: "double", arguments: one }), delta(1, "a", { name: "double", arguments: two })],
      ["2", "4"],
    ],
    [
      "with arguments that are JSON instead of its text",
      [delta(0, "a", { name: "double", arguments: { value: 1 } })],
      ["2"],
    ],
    [
      "with such arguments and without a name",
      [
        delta(0, "a", { name: "", arguments: { value: 1 } }),
        delta(1, "b", { name: "double", arguments: { value: 2 } }),
      ],
      [nameless, "4"],
    ],
    [
      "said whole twice",
      [delta(0, "a", { name: "double", arguments: one }), delta(0, "a", { name: "double", arguments: one })],
      ["2"],
    ],
    [
      "said whole once more at its end",
      [
        delta(0, "a", { name: "double", arguments: '{"va' }),
        delta(0, undefined, { arguments: 'lue":1}' }),
        delta(0, undefined, { arguments: one }),
      ],
      ["2"],
    ],
    [
      "said whole at two places",
      [
        delta(0, "a", { name: "double", arguments: one }),
        delta(1, "a", { name: "double", arguments: one }),
        delta(2, "b", { name: "double", arguments: one }),
      ],
      ["2", "2"],
    ],
    [
      "without an id, likewise",
      [
        delta(0, undefined, { name: "double", arguments: one }),
        delta(1, undefined, { name: "double", arguments: two }),
      ],
      ["2", "4"],
    ],
  ])("LOOP-7 LOOP-11 %s", async (_, deltas, results) => {
    const run = await openHttpRun(deltas);
    expect(await outcome(run)).toEqual(results);
    expect(run.provider.asked).toHaveLength(2);
    const messages = run.provider.asked[1]!.body.messages as { tool_calls?: { id: string }[]; tool_call_id?: string }[];
    const asked = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id));
    expect(new Set(asked).size).toBe(results.length);
    expect(messages.flatMap(({ tool_call_id: id }) => (id === undefined ? [] : [id]))).toEqual(asked);
  });
});

describe("a call that a model gets wrong is an error for it, through any LanguageModelV4", () => {
  test.each<[string, LanguageModelV4StreamPart[], unknown[]]>([
    ["without a name", [call("a", "", one)], [nameless]],
    ["with the id of another", [call("a", "double", one), call("a", "double", two)], ["2", twice]],
    ["without ids, which is no fault", [call("", "double", one), call("", "double", two)], ["2", "4"]],
    ["with an id that is no text", [{ ...call("", "double", two), toolCallId: undefined } as never], ["4"]],
    ["with arguments that are no text", [{ ...call("a", "double", ""), input: { value: 4 } } as never], ["8"]],
    ["with a name that is no text", [{ ...call("a", "", one), toolName: undefined } as never], [nameless]],
  ])("LOOP-7 LOOP-11 %s", async (_, parts, results) => {
    expect(await outcome(await openDirectRun(parts))).toEqual(results);
  });
});
