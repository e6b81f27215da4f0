import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { type Item, ItemSchema, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { ListToolsResponseSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { foldLog } from "../../log/state/fold.ts";
import { itemsFromState } from "../../log/state/view.ts";
import { emptyInbox } from "../../testing/loop-run.ts";
import { nestedJson, runFromSteps, type Step, steps, userItem } from "../../testing/random-log.ts";
import { faultsOfPrompt } from "../../testing/valid-prompt.ts";
import { createToolTable } from "../tools/tool-table.ts";
import { promptOfRun } from "./prompt-of-run.ts";

const agent = create(AgentSchema, { name: "a", instructions: "Help." });
const noTools = createToolTable(create(ListToolsResponseSchema), undefined);

function said(role: Role, text: string, providerMetadataJson = '{"fake":7}'): Item {
  return create(ItemSchema, {
    item: { case: "message", value: { role, content: textContent(text), providerMetadataJson } },
  });
}

function call(callId: string, argumentsJson = "{}"): Item {
  return create(ItemSchema, { item: { case: "functionCall", value: { callId, name: "tool", argumentsJson } } });
}

function output(callId: string, outputJson = "1"): Item {
  return create(ItemSchema, { item: { case: "functionCallOutput", value: { callId, result: { outputJson } } } });
}

const nestedMetadata = `{"fake":{"deep":${nestedJson}}}`;

/** What a client may give, however odd: calls and results that fit nothing, instructions anywhere, no beginning. */
const item = fc.oneof(
  fc
    .record({
      role: fc.constantFrom(Role.USER, Role.ASSISTANT, Role.SYSTEM),
      text: fc.constantFrom("hello", " "),
    })
    .map(({ role, text }) => (text === " " && role !== Role.ASSISTANT ? userItem("go") : said(role, text))),
  fc.constantFrom("a", "a-2", "b", "call 1", "", "y".repeat(90)).map((callId) => call(callId)),
  fc.constantFrom("a", "b", "call 1", "nobody").map((callId) => output(callId)),
  fc.constantFrom(call("a", nestedJson), output("a", nestedJson), said(Role.ASSISTANT, "hm", nestedMetadata)),
  fc.constantFrom("", "hm").map((text) => create(ItemSchema, { item: { case: "reasoning", value: { text } } })),
);
const inputs = fc.array(item, { maxLength: 6 });

describe("the transcript", () => {
  test("LOOP-13 LOOP-5 of any log, cut off after any event, behind any history, is a prompt that every provider takes", () => {
    fc.assert(
      fc.property(fc.array(steps, { maxLength: 2 }), steps, inputs, (earlier, runSteps, input) => {
        let history: Item[] = [];
        for (const one of earlier) {
          const { state } = runFromSteps(one, [userItem("before")], history);
          history = [...history, ...itemsFromState(state)];
        }
        const { events } = runFromSteps(runSteps, input, history);
        for (let count = 1; count <= events.length; count += 1) {
          const state = foldLog(events.slice(0, count))!;
          const faults = faultsOfPrompt(promptOfRun(state, { agent, inbox: emptyInbox, history }, noTools));
          expect(faults, `after ${count} events`).toEqual([]);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("LOOP-13 is the same for whoever folds the log anew and for whoever has followed it", () => {
    fc.assert(
      fc.property(steps, (runSteps) => {
        const { state, events } = runFromSteps(runSteps, [userItem("go")], []);
        const ask = (folded: typeof state) => promptOfRun(folded, { agent, inbox: emptyInbox, history: [] }, noTools);
        expect(ask(foldLog(events)!)).toEqual(ask(state));
      }),
    );
  });

  test("LOOP-4 results stand in the order of the calls, whatever order they came in", () => {
    const calls = ["1", "2", "3"].map((id) => ({ kind: "call" as const, id, name: "tool", argumentsJson: "{}" }));
    const result = (which: number, outputJson: string): Step => ({ kind: "result", which, outputJson });
    const runSteps: Step[] = [{ kind: "turn", parts: calls }, result(2, "3"), result(0, "1"), result(0, "2")];
    const { state } = runFromSteps(runSteps, [userItem("go")], []);
    const last = promptOfRun(state, { agent, inbox: emptyInbox, history: [] }, noTools).at(-1);
    expect(last?.content).toMatchObject([{ output: { value: 1 } }, { output: { value: 2 } }, { output: { value: 3 } }]);
  });

  test("LOOP-7 what is nested too deeply to be walked through is told as text, errors as errors", () => {
    const input = [call("a", nestedJson), call("b"), output("a", nestedJson)];
    const failed = create(ItemSchema, {
      item: { case: "functionCallOutput", value: { callId: "b", result: { outputJson: nestedJson, isError: true } } },
    });
    const { state } = runFromSteps([], [userItem("go"), ...input, failed], []);
    const prompt = promptOfRun(state, { agent, inbox: emptyInbox, history: [] }, noTools);
    expect(prompt[2]?.content).toMatchObject([{ input: { unreadable_arguments: nestedJson } }, { input: {} }]);
    expect(prompt[3]?.content).toMatchObject([
      { output: { type: "text", value: nestedJson } },
      { output: { type: "error-text", value: nestedJson } },
    ]);
  });

  test("LOOP-6 an output that answers a call of an earlier run stands next to it, before the news", () => {
    const call = { kind: "call" as const, id: "a", name: "tool", argumentsJson: "{}" };
    const earlier = runFromSteps([{ kind: "turn", parts: [call] }], [userItem("before")], []);
    const history = itemsFromState(earlier.state);
    const { state } = runFromSteps([{ kind: "inbox" }], [output("a"), userItem("go")], history);
    const prompt = promptOfRun(state, { agent, inbox: emptyInbox, history }, noTools);
    expect(prompt.map(({ role }) => role)).toEqual(["system", "user", "assistant", "tool", "user", "user"]);
    expect(prompt[3]?.content).toMatchObject([{ toolCallId: "a", output: { value: 1 } }]);
  });
});
