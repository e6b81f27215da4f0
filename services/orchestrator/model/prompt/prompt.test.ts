import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ContentPart } from "#gen/toolbus/content/v1/content_pb.ts";
import { TurnCommittedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type Item, ItemSchema, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import type { Turn } from "../../log/state/fold.ts";
import { noResults } from "../../log/state/results.ts";
import { itemsFromTurns } from "../../log/state/view.ts";
import { promptFromItems } from "./prompt.ts";

function message(role: Role, text: string): Item {
  return create(ItemSchema, { item: { case: "message", value: { role, content: textContent(text) } } });
}

function call(callId: string, argumentsJson = "{}"): Item {
  return create(ItemSchema, {
    item: { case: "functionCall", value: { callId, name: `tool_${callId}`, argumentsJson } },
  });
}

function output(callId: string, outputJson: string, isError = false): Item {
  const value = { callId, result: { outputJson, isError } };
  return create(ItemSchema, { item: { case: "functionCallOutput", value } });
}

describe("a prompt", () => {
  test("holds instructions, messages, calls and results in their roles", () => {
    const prompt = promptFromItems("Be brief.", [
      message(Role.USER, "hello"),
      message(Role.ASSISTANT, "I look."),
      call("a", '{"x":1}'),
      output("a", '{"y":2}'),
      message(Role.ASSISTANT, "done"),
    ]);
    expect(prompt).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "hello" }] },
      {
        role: "assistant",
        content: [
          { type: "text", text: "I look." },
          { type: "tool-call", toolCallId: "a", toolName: "tool_a", input: { x: 1 } },
        ],
      },
      {
        role: "tool",
        content: [
          { type: "tool-result", toolCallId: "a", toolName: "tool_a", output: { type: "json", value: { y: 2 } } },
        ],
      },
      { role: "assistant", content: [{ type: "text", text: "done" }] },
    ]);
  });

  test("LOOP-18 shows a user's files where they stand", () => {
    const file = (source: object) => ({
      part: { case: "file", value: { mediaType: "image/png", filename: "", source } },
    });
    const content = [
      ...textContent("Look:"),
      file({ case: "data", value: Buffer.from("png") }),
      file({ case: "url", value: "https://example.com/a.png" }),
    ] as ContentPart[];
    const seen = create(ItemSchema, { item: { case: "message", value: { role: Role.USER, content } } });
    expect(promptFromItems("", [seen])[0]?.content).toEqual([
      { type: "text", text: "Look:" },
      { type: "file", mediaType: "image/png", data: { type: "data", data: "cG5n" } },
      { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://example.com/a.png") } },
    ]);
  });

  test("LOOP-7 an error stays an error, and what is not JSON is shown as it is", () => {
    const prompt = promptFromItems("", [
      call("a"),
      call("b"),
      output("a", '{"error":"no"}', true),
      output("b", "plain"),
    ]);
    expect(prompt.at(-1)?.content).toMatchObject([
      { output: { type: "error-json", value: { error: "no" } } },
      { output: { type: "text", value: "plain" } },
    ]);
  });

  test("a call with unreadable arguments can be shown to the model again", () => {
    const [assistant] = promptFromItems("", [call("a", '{"x":')]);
    expect(assistant?.content).toMatchObject([{ input: { unreadable_arguments: '{"x":' } }]);
  });

  test("LOOP-13 instructions that come later stand where they came; one system message stands first", () => {
    const prompt = promptFromItems("Be brief.", [
      message(Role.SYSTEM, "Speak French."),
      message(Role.USER, "hello"),
      message(Role.SYSTEM, "Speak German."),
    ]);
    expect(prompt).toEqual([
      { role: "system", content: "Be brief.\n\nSpeak French." },
      { role: "user", content: [{ type: "text", text: "hello" }] },
      { role: "user", content: [{ type: "text", text: "[Further instructions]\nSpeak German." }] },
    ]);
  });

  test("LOOP-6 a result of a call that was passed over is told in words, beside results that fit", () => {
    const prompt = promptFromItems("", [
      message(Role.USER, "one"),
      call("a"),
      message(Role.USER, "two"),
      call("b"),
      output("a", "1"),
      output("b", "2"),
      call("c"),
      create(ItemSchema, { item: { case: "functionCallOutput", value: { callId: "b" } } }), // said again, as some clients do
      output("c", "3"),
    ]);
    expect(prompt.map(({ role }) => role)).toEqual([
      ...["user", "assistant", "tool", "user", "assistant", "tool", "user", "assistant", "tool"],
    ]);
    expect(prompt[2]?.content).toMatchObject([{ output: { type: "error-text" } }]);
    expect(prompt[5]?.content).toMatchObject([{ toolCallId: "b", output: { value: 2 } }]);
    expect(prompt[6]?.content).toEqual([{ type: "text", text: "[Tool Result] (callId: a) 1" }]);
  });

  test("LOOP-11 a thought that nothing follows is left out, and so is what is no metadata", () => {
    const thought = create(ItemSchema, { item: { case: "reasoning", value: { text: "hm" } } });
    const odd = create(ItemSchema, {
      item: {
        case: "message",
        value: { role: Role.ASSISTANT, content: textContent("so"), providerMetadataJson: '["x"]' },
      },
    });
    const prompt = promptFromItems("", [thought, odd, thought, message(Role.USER, "and?"), thought]);
    expect(prompt.map(({ content }) => content)).toEqual([
      [
        { type: "reasoning", text: "hm" },
        { type: "text", text: "so" },
      ],
      [{ type: "text", text: "and?" }],
    ]);
  });

  test("each call is followed by its result before anything else is said, whatever the items are", () => {
    const id = fc.constantFrom("a", "b", "c");
    const item = fc.oneof(
      id.map((callId) => call(callId)),
      id.map((callId) => output(callId, "1")),
      fc.constantFrom(Role.USER, Role.ASSISTANT).map((role) => message(role, "text")),
    );
    fc.assert(
      fc.property(fc.array(item, { maxLength: 30 }), (items) => {
        const prompt = promptFromItems("", items);
        for (const [index, { role, content }] of prompt.entries()) {
          if (role !== "assistant") continue;
          const calls = content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []));
          const next = prompt[index + 1];
          const answered =
            next?.role === "tool" ? next.content.flatMap((p) => (p.type === "tool-result" ? [p.toolCallId] : [])) : [];
          expect(answered).toEqual(calls);
        }
      }),
    );
  });

  test("converts a result, the arguments of a call and a file once, however many turns come after", () => {
    const part = { case: "file" as const, value: { source: { case: "data" as const, value: Buffer.from("png") } } };
    const value = { role: Role.USER, content: [{ part }] };
    const input = create(ItemSchema, { item: { case: "message", value } });
    const turns = [turnOf(0, "first", 1), turnOf(1, "second", 1)];
    const converted = (count: number) =>
      promptFromItems("", [input, ...itemsFromTurns(turns.slice(0, count))]).flatMap(({ content }) =>
        (content as (string | { type: string; input?: object; output?: object })[]).flatMap((part) => {
          if (typeof part === "string" || part.type === "text") return [];
          return [part.input ?? part.output ?? part];
        }),
      );
    const before = converted(1);
    expect(before).toHaveLength(3);
    for (const [index, one] of converted(2).slice(0, 3).entries()) expect(one).toBe(before[index]);
  });

  test("grows at its end from turn to turn, so that providers find its beginning in their caches", () => {
    const ofTurns = fc.array(fc.record({ text: fc.string(), calls: fc.integer({ min: 1, max: 3 }) }), { maxLength: 5 });
    fc.assert(
      fc.property(ofTurns, (spoken) => {
        const turns = spoken.map(({ text, calls }, index) => turnOf(index, text, calls));
        const input = [message(Role.USER, "hello")];
        const whole = promptFromItems("", [...input, ...itemsFromTurns(turns)]);
        const before = promptFromItems("", [...input, ...itemsFromTurns(turns.slice(0, -1))]);
        expect(whole.slice(0, before.length)).toEqual(before);
      }),
    );
  });
});

function turnOf(sequence: number, text: string, count: number): Turn {
  const calls = Array.from({ length: count }, (_, index) => call(`call_${sequence}_${index}`));
  const committed = create(TurnCommittedSchema, { items: [message(Role.ASSISTANT, text), ...calls] });
  const functionCalls = calls.flatMap(({ item }) => (item.case === "functionCall" ? [item.value] : []));
  const results = functionCalls.map(({ callId }): [string, ToolResult] => [
    callId,
    create(ToolResultSchema, { outputJson: `"${callId}"` }),
  ]);
  return {
    sequence,
    committed,
    calls: functionCalls,
    resultsByCallId: new Map(results),
    submissionsByCallId: noResults,
    endsRun: false,
  };
}
