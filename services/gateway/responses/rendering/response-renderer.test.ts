import { create } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type RunDelta,
  RunDeltaSchema,
  type RunEvent,
  RunEventSchema,
  RunTextReplacedSchema,
} from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type Item, ItemSchema, Role, RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { type WatchRunResponse, WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import type { Typed } from "../request/body.ts";
import { inputFrom } from "../request/input.ts";
import { metadataFrom } from "../request/notes.ts";
import { toolOptionsFrom } from "../request/tools.ts";
import type { StreamEvent } from "./event-writer.ts";
import { ResponseRenderer } from "./response-renderer.ts";

type Body = RunEvent["event"];
type Delta = RunDelta["delta"];

const asUpdate = (update: WatchRunResponse["update"]) => create(WatchRunResponseSchema, { update });
const events = (bodies: readonly unknown[]) =>
  bodies.map((event, sequence) =>
    asUpdate({ case: "event", value: create(RunEventSchema, { runId: "r", sequence, event: event as Body }) }),
  );
const deltas = (given: readonly Delta[], { turn = 1, attempt = 1, from = 0 } = {}) =>
  given.map((delta, n) =>
    asUpdate({ case: "delta", value: create(RunDeltaSchema, { turn, attempt, index: from + n, delta }) }),
  );
const told = (updates: readonly WatchRunResponse[], renderer = new ResponseRenderer()): StreamEvent[] =>
  updates.flatMap((update) => renderer.take(update));

const failed = (text: string) => ({ type: "mcp_tool_execution_error", content: [{ type: "text", text }] });
const said = (text: string) =>
  create(ItemSchema, { item: { case: "message", value: { role: Role.ASSISTANT, content: textContent(text) } } });
const thought = (text: string) => create(ItemSchema, { item: { case: "reasoning", value: { text } } });
const called = (callId: string, name = "tool", argumentsJson = "{}") =>
  create(ItemSchema, { item: { case: "functionCall", value: { callId, name, argumentsJson } } });

const functionTools = [{ name: "mine" }];
const accepted = { case: "accepted", value: { agent: "clerk", options: { functionTools } } };
const claimed = { case: "claimed", value: {} };
const committed = (items: Item[], turn = 1) => ({
  case: "turnCommitted",
  value: { turn, attempt: 1, items, usage: { inputTokens: 3n, outputTokens: 2n } },
});
const finished = (callId: string, outputJson: string, isError = false) => ({
  case: "callFinished",
  value: { callId, result: { outputJson, isError } },
});
const ended = { case: "ended", value: { state: RunState.COMPLETED, endReason: RunEndReason.FINAL_ANSWER } };
const typesOf = (all: readonly StreamEvent[]) => all.map(({ type }) => type.replace("response.", ""));
const outputOf = (all: readonly StreamEvent[]) => (all.at(-1)?.response as { output: object[] } | undefined)?.output;

describe("LOOP-18 a response", () => {
  const spoken = fc.array(
    fc.record({ thoughts: fc.array(fc.string()), texts: fc.array(fc.string()), calls: fc.integer({ min: 0, max: 2 }) }),
    { maxLength: 4 },
  );

  test("names each function of the client as the request did, also where names of groups begin alike", () => {
    const function_ = (name: string) => ({ type: "function", name });
    const group = (name: string, ...names: string[]) => ({ type: "namespace", name, tools: names.map(function_) });
    const body = { model: "clerk", tools: [group("mcp", "look"), group("mcp__a", "look"), function_("mcp__plain")] };
    const options = { ...toolOptionsFrom(body), metadata: metadataFrom(body, "") };
    const calls = ["mcp__look", "mcp__a__look", "mcp__plain"].map((name) => called(name, name));
    const all = [{ case: "accepted", value: { agent: "clerk", options } }, claimed, committed(calls), ended];
    expect(outputOf(told(events(all)))).toMatchObject([
      { name: "look", namespace: "mcp" },
      { name: "look", namespace: "mcp__a" },
      { name: "mcp__plain" },
    ]);
  });

  test("is told of a run whose notes somebody else wrote", () => {
    for (const namespaces of [7, null, "mine", ["m"], { mine: 7 }]) {
      const options = { functionTools, metadata: { "toolbus.response": JSON.stringify({ namespaces }) } };
      const all = [{ case: "accepted", value: { agent: "clerk", options } }, claimed];
      expect(outputOf(told(events([...all, committed([called("c", "mine")]), ended])))).toHaveLength(1);
    }
  });

  test("is told live as it is told of the log, with the same numbers", () => {
    fc.assert(
      fc.property(spoken, fc.boolean(), (turns, isLate) => {
        const live: WatchRunResponse[] = [];
        const bodies: unknown[] = [accepted, claimed];
        live.push(...events(bodies));
        for (const [n, { thoughts, texts, calls }] of turns.entries()) {
          const ids = Array.from({ length: calls }, (_, call) => `${n}_${call}`);
          const given = [
            ...thoughts.map((value): Delta => ({ case: "reasoning", value })),
            ...texts.map((value): Delta => ({ case: "text", value })),
          ];
          live.push(...deltas(given, { turn: n + 1 }).slice(isLate ? 1 : 0)); // the first of each turn may be missed
          const items = [thought(thoughts.join("")), said(texts.join("")), ...ids.map((id) => called(id))];
          const stored = [committed(items, n + 1), ...ids.map((id) => finished(id, '"out"'))];
          bodies.push(...stored);
          live.push(...events(stored));
        }
        live.push(...events([ended]));
        const whole = told(events([...bodies, ended]));
        expect(told(live)).toEqual(whole);
        expect(whole.map(({ sequence_number: number }) => number)).toEqual(whole.map((_, n) => n));
      }),
    );
  });

  test("has the answer of the tool at which its run stopped as its text", () => {
    const value = { state: RunState.COMPLETED, endReason: RunEndReason.STOPPED_AT_TOOL, outputText: "four" };
    const all = told(
      events([accepted, claimed, committed([called("a")]), finished("a", '"four"'), { case: "ended", value }]),
    );
    const message = { type: "message", status: "completed", content: [{ text: "four" }] };
    expect(outputOf(all)).toMatchObject([{ status: "completed", output: "four" }, message]);
    expect(all.at(-1)).toMatchObject({ type: "response.completed" });
  });

  test("tells a text as it comes, and its item before", () => {
    const renderer = new ResponseRenderer();
    told(events([accepted, claimed]), renderer);
    const first = told(deltas([{ case: "text", value: "Hello" }]), renderer);
    expect(typesOf(first)).toEqual([
      "output_item.added",
      "content_part.added",
      "output_text.delta",
      "output_text.delta",
    ]);
    expect(renderer.response).toMatchObject({ status: "in_progress", usage: null });
  });

  test("is told live to who comes amid a text, but not where it may not be all that was said", () => {
    const beginning = events([accepted, claimed]);
    const soFar = (textOnly: boolean) =>
      asUpdate({ case: "replaced", value: create(RunTextReplacedSchema, { ...place, text: "Hello", textOnly }) });
    const place = { turn: 1, attempt: 1, deltaCount: 3 };
    const next = deltas([{ case: "text", value: " world" }], { from: 3 });
    const live = told([...beginning, soFar(true), ...next]);
    const texts = live.filter(({ type }) => type === "response.output_text.delta").map(({ delta }) => delta);
    expect(texts.join("")).toBe("Hello wor"); // in pieces of four
    expect(told([...beginning, soFar(false), ...next])).toEqual(told(beginning));
    const rest = events([committed([said("Hello world")]), ended]);
    const whole = told([...beginning, ...rest]);
    for (const textOnly of [true, false])
      expect(told([...beginning, soFar(textOnly), ...next, ...rest])).toEqual(whole);
  });

  test("shows calls of the agent's tools with what came of them, whichever is first", () => {
    const all = told(
      events([
        accepted,
        claimed,
        committed([called("a", "one", '{"x":1}'), called("b", "two")]),
        finished("b", '{"error":"no"}', true),
        finished("a", '"fine"'),
        committed([said("done")], 2),
        ended,
      ]),
    );
    const call = { type: "mcp_call", server_label: "clerk" };
    expect(outputOf(all)).toMatchObject([
      { ...call, name: "one", arguments: '{"x":1}', status: "completed", output: "fine", error: null },
      { ...call, name: "two", status: "failed", output: null, error: failed("no") },
      { type: "message", content: [{ text: "done" }] },
    ]);
    const done = all.filter(({ type }) => type === "response.output_item.done");
    expect(done.map(({ output_index: index }) => index)).toEqual([1, 0, 2]);
    expect(all.at(-1)?.response).toMatchObject({ usage: { input_tokens: 6, output_tokens: 4, total_tokens: 10 } });
  });

  test("names a call of a server of the request as the request does, and takes it back", () => {
    const value = { agent: "clerk", options: { mcpServers: [{ name: "work" }, { name: "work__b" }] } };
    const hashed = "work__b_look__02bf5e950e0b5a0e";
    const calls = committed([called("a", "work__look"), called("b", "workers"), called("c", hashed)]);
    const output = outputOf(told(events([{ case: "accepted", value }, claimed, calls, ended]))) as Typed[];
    const [looked, own] = [
      { server_label: "work", name: "look" },
      { server_label: "clerk", name: "workers" },
    ];
    expect(output).toMatchObject([looked, own, { ...own, name: hashed }]);
    const { items } = inputFrom({ model: "clerk", tools: [{ type: "mcp", server_label: "work" }], input: output });
    expect(items.flatMap(({ item }) => (item?.case === "call" ? item.value.name : []))).toEqual([
      "work__look",
      "workers",
      hashed,
    ]);
  });

  test("hands the client its own calls, but none that the run refused", () => {
    const calls = [called("a", "mine"), called("b", "mine"), called("c", "mine")];
    const all = told(events([accepted, claimed, committed(calls), finished("b", '{"error":"odd"}', true), ended]));
    expect(outputOf(all)).toMatchObject([
      { type: "mcp_call", name: "mine", status: "failed", error: failed("odd") },
      { type: "function_call", call_id: "a", name: "mine", status: "completed" },
      { type: "function_call", call_id: "c" },
    ]);
  });
});

describe("LOOP-18 an answer that broke off", () => {
  const begun = [...events([accepted, claimed]), ...deltas([{ case: "text", value: "Hello wor" }])];
  const anew = (text: string) => deltas([{ case: "text", value: text }], { attempt: 2 });

  test("that failed is told by an error before its last event, but for a socket, which the error would end", () => {
    const lost = {
      case: "ended",
      value: { state: RunState.FAILED, endReason: RunEndReason.MODEL_ERROR, error: "no answer" },
    };
    const all = told(events([accepted, claimed, lost]));
    expect(typesOf(all)).toEqual(["created", "in_progress", "error", "failed"]);
    expect(all[2]).toMatchObject({ sequence_number: 2, message: "no answer", error: { type: "model_error" } });
    const onSocket = told(events([accepted, claimed, lost]), new ResponseRenderer({ isOnSocket: true }));
    expect(onSocket.map(({ sequence_number }) => sequence_number)).toEqual([0, 1, 2]);
    expect(typesOf(onSocket).at(-1)).toBe("failed");
  });

  test("is told on where the next attempt says the same", () => {
    const all = told([
      ...begun,
      ...anew("Hello"),
      ...anew("").slice(1),
      ...events([committed([said("Hello world")]), ended]),
    ]);
    expect(all).toEqual(told(events([accepted, claimed, committed([said("Hello world")]), ended])));
  });

  test("breaks the stream of who has seen what does not hold", () => {
    const renderer = new ResponseRenderer();
    told([...begun, ...anew("Howdy")], renderer);
    expect(() => told(events([committed([said("Howdy")])]), renderer)).toThrow(/does not hold/);
  });

  test.each(["length", "content-filter"])("by %s is an incomplete item, the last, live and later", (finishReason) => {
    const cut = {
      case: "turnCommitted",
      value: { ...committed([thought("So"), said("Hello world")]).value, finishReason },
    };
    const value = { state: RunState.INCOMPLETE, endReason: RunEndReason.MAX_OUTPUT_TOKENS };
    const rest = events([cut, { case: "ended", value }]);
    const all = told([...events([accepted, claimed]), ...rest]);
    expect(outputOf(all)).toMatchObject([{ status: "completed" }, { type: "message", status: "incomplete" }]);
    const thoughtLive = deltas([
      { case: "reasoning", value: "So" },
      { case: "text", value: "Hello" },
    ]);
    expect(told([...events([accepted, claimed]), ...thoughtLive, ...rest])).toEqual(all);
  });

  test("stays incomplete where the run ends with it", () => {
    const checkpoint = { case: "textCheckpoint", value: { turn: 1, attempt: 1, deltaCount: 1, text: "Hello wor" } };
    const canceled = { case: "ended", value: { state: RunState.CANCELED, endReason: RunEndReason.CANCELED } };
    const all = told([...begun, ...events([checkpoint, canceled])]);
    expect(outputOf(all)).toMatchObject([{ status: "incomplete", content: [{ text: "Hello wor" }] }]);
    expect(all.at(-1)).toMatchObject({
      type: "response.incomplete",
      response: { status: "cancelled", incomplete_details: null },
    });
    expect(all).toEqual(told(events([accepted, claimed, checkpoint, canceled])));
  });
});
