/**
 * The specification that the loop comes from (spec 04, tool system), section by section, as it holds here. What belongs to
 * another service is proven there: MCP in mcp-bridge, the registry of hosted tools (LOOP-9) in worker-pool/hosted, custom types
 * (KIND-3) in tool-router/catalogue, validated and shortened results (LOOP-8) in tool-router/calls/answer.
 */

import { describe, expect, test } from "vitest";
import { RunEndReason, RunMode, RunState, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { until } from "#runtime/time/until.ts";
import type { FakeTool } from "../../testing/fakes/fake-router.ts";
import { double, openRun, tools } from "../../testing/loop-run.ts";

const mode = (value: ToolChoiceMode) => ({ toolChoice: { choice: { case: "mode" as const, value } } });
const hang: FakeTool = { name: "hang", answer: () => new Promise(() => {}) };

describe("spec 04, tool interface hierarchy", () => {
  test("LOOP-5 KIND-1 calls for the client and calls for the suite stand in one turn, told apart by who declared the tool", async () => {
    const run = await openRun({
      turns: [{ calls: [double(1), { name: "mine", id: "m" }] }, { text: "both" }],
      options: { functionTools: [{ name: "mine", inputSchemaJson: '{"type":"object"}' }] },
    });
    expect(await run.work()).toBe("parked");
    expect(run.router.executed).toEqual(["double"]);
    expect((await run.view()).requiredCalls).toMatchObject([{ callId: "m", name: "mine", argumentsJson: "{}" }]);
  });

  test("LOOP-7 a result has its call's id, its output, and says whether it is an error", async () => {
    const run = await openRun({ turns: [{ calls: [double(2, "ok"), { name: "fail", id: "bad" }] }, { text: "done" }] });
    await run.work();
    expect(await run.results()).toMatchObject([
      { callId: "ok", result: { outputJson: "4", isError: false } },
      { callId: "bad", result: { outputJson: '{"error":"Error: broken"}', isError: true } },
    ]);
  });
});

describe("spec 04, tool_choice and allowed_tools", () => {
  test.each([
    ["auto", ToolChoiceMode.AUTO, { text: "no call needed" }, { endReason: RunEndReason.FINAL_ANSWER }],
    [
      "required",
      ToolChoiceMode.REQUIRED,
      { calls: [double(1)] },
      { endReason: RunEndReason.FINAL_ANSWER, turnCount: 2 },
    ],
    ["none", ToolChoiceMode.NONE, { text: "no call allowed" }, { endReason: RunEndReason.FINAL_ANSWER }],
  ])("LOOP-2 %s is handed to the model, in the first turn", async (choice, value, turn, expected) => {
    const run = await openRun({ turns: [turn, { text: "done" }], options: mode(value) });
    await run.work();
    expect(run.asked[0]?.toolChoice).toEqual({ type: choice });
    expect(await run.view()).toMatchObject(expected);
  });

  test("LOOP-2 a forced tool is forced once, under any of its names", async () => {
    const options = { toolChoice: { choice: { case: "forcedTool" as const, value: "twice" } } };
    const run = await openRun({ turns: [{ calls: [double(1)] }, { text: "done" }], options });
    await run.work();
    expect(run.asked.map(({ toolChoice }) => toolChoice)).toEqual([
      { type: "tool", toolName: "double" },
      { type: "auto" },
    ]);
  });

  test("LOOP-3 the filter leaves all tools visible and lets only some be called, at the router once more", async () => {
    const allowedTools = { names: ["double", "mine"] };
    const options = { allowedTools, functionTools: [{ name: "mine" }] };
    const run = await openRun({ turns: [{ calls: [double(1), { name: "fail" }] }, { text: "done" }], options });
    await run.work();
    expect(run.asked[0]?.tools?.map(({ name }) => name)).toEqual(["double", "fail", "mine"]);
    expect(run.router.executed).toEqual(["double"]);
    expect(run.router.requests[0]?.allowedTools).toMatchObject(allowedTools);
  });
});

describe("spec 04, the agentic loop ends when", () => {
  test("LOOP-1 the model produces no tool calls", async () => {
    const run = await openRun({ turns: [{ text: "the answer" }] });
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "the answer", turnCount: 1 });
  });

  test("LOOP-1 max_turns is reached", async () => {
    const run = await openRun({ turns: [{ calls: [double(1)] }, { calls: [double(2)] }], limits: { maxTurns: 2 } });
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.INCOMPLETE, endReason: RunEndReason.MAX_TURNS });
  });

  test("LOOP-15 it is canceled", async () => {
    const run = await openRun({ turns: [{ calls: [{ name: "hang" }] }], tools: [hang] });
    const working = run.work().catch((error: Error) => error.message);
    await until(() => run.router.running === 1, { what: "the call" });
    run.given.abort(new Error("canceled"));
    expect(await working).toBe("canceled");
    expect(run.router.aborted).toHaveLength(1);
  });

  test("LOOP-1 an error is unrecoverable", async () => {
    const run = await openRun({ turns: [{ calls: [double(1)] }] }); // the script runs out
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.FAILED, endReason: RunEndReason.MODEL_ERROR });
  });
});

describe("spec 04, function calling", () => {
  test("LOOP-6 is completed in single-turn mode, and the follow-up's function_call_output finds its call", async () => {
    const options = { mode: RunMode.SINGLE_TURN, functionTools: [{ name: "mine" }] };
    const first = await openRun({ turns: [{ calls: [{ name: "mine", id: "m" }] }], options });
    await first.work();
    const { state: status, items } = await first.view();
    expect(status).toBe(RunState.COMPLETED);
    const output = {
      item: { case: "functionCallOutput" as const, value: { callId: "m", result: { outputJson: "42" } } },
    };
    const second = await openRun({
      turns: [{ text: "I know" }],
      accepted: { input: [output] },
      context: { history: items },
    });
    await second.work();
    expect(second.asked[0]?.prompt.at(-1)?.content).toMatchObject([{ toolCallId: "m", output: { value: 42 } }]);
  });
});

describe("spec 04, open questions, as they are answered here", () => {
  test("LOOP-4 calls of one turn run in parallel, within a bound, unless the run asks for their order", async () => {
    const turns = [{ calls: [double(1), double(2), double(3)] }, { text: "done" }];
    const many = await openRun({ turns });
    await many.work();
    expect(many.router.mostRunning).toBeGreaterThan(1);
    const ordered = await openRun({ turns, options: { parallelToolCalls: false } });
    await ordered.work();
    expect(ordered.router.mostRunning).toBe(1);
  });

  test("ORCH-7 tools are discovered anew for each turn, so that servers may come and go in mid-run", async () => {
    const added: FakeTool[] = [...tools];
    const learn: FakeTool = { name: "learn", answer: () => added.push({ name: "late", answer: () => "found" }) };
    added.push(learn);
    const run = await openRun({
      turns: [{ calls: [{ name: "learn" }] }, { calls: [{ name: "late" }] }, { text: "{{result.late}}" }],
      tools: added,
    });
    await run.work();
    expect(run.asked[1]?.tools?.map(({ name }) => name)).toContain("late");
    expect(await run.view()).toMatchObject({ outputText: "found" });
  });

  test("LOOP-10 what a tool tells meanwhile streams to the client, between the events that are stored", async () => {
    const run = await openRun({ turns: [{ calls: [double(1)] }, { text: "done" }] });
    await run.work();
    const progress = run.deltas.filter(({ delta }) => delta.case === "progress");
    expect(progress).toMatchObject([{ turn: 1, delta: { value: { progress: { progress: 1, total: 2 } } } }]);
  });
});
