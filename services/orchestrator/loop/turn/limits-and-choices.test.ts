import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { RunEndReason, RunState, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { usd, usdPrice } from "#runtime/money/testing/dollars.ts";
import { createFakeModel } from "../../testing/fakes/fake-model.ts";
import type { FakeTool } from "../../testing/fakes/fake-router.ts";
import { double, openRun } from "../../testing/loop-run.ts";

describe("limits of a run, and what its model may and must call", () => {
  test("LOOP-1 max_turns is incomplete, with the results of the last turn; 10 unless told", async () => {
    const turns = Array.from({ length: 12 }, () => ({ calls: [double(1)] }));
    const run = await openRun({ turns });
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.INCOMPLETE,
      endReason: RunEndReason.MAX_TURNS,
      turnCount: 10,
    });
    expect(await run.results()).toHaveLength(10);
    const short = await openRun({ turns, limits: { maxTurns: 2 } });
    await short.work();
    expect(await short.view()).toMatchObject({ endReason: RunEndReason.MAX_TURNS, turnCount: 2 });
  });

  test("LOOP-1 max_tool_calls is never exceeded: what is over it is refused, and the run ends", async () => {
    const turns = [{ calls: [double(1)] }, { calls: [double(2), double(3)] }, { text: "never" }];
    const run = await openRun({ turns, limits: { maxToolCalls: 2 } });
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.INCOMPLETE,
      endReason: RunEndReason.MAX_TOOL_CALLS,
      turnCount: 2,
    });
    expect(run.router.executed).toHaveLength(2);
    expect((await run.results()).at(-1)?.result).toMatchObject({ isError: true });
  });

  test("LOOP-1 a deadline cuts the model's request and a call in flight", async () => {
    const silent = await openRun({
      turns: [{ text: "late", delayMs: 60_000 }],
      limits: { timeout: durationFromMs(30) },
    });
    await silent.work();
    expect(await silent.view()).toMatchObject({
      state: RunState.INCOMPLETE,
      endReason: RunEndReason.DEADLINE,
      turnCount: 0,
    });
    const hang: FakeTool = { name: "hang", answer: () => new Promise(() => {}) };
    const hanging = await openRun({
      turns: [{ calls: [{ name: "hang" }] }],
      tools: [hang],
      limits: { timeout: durationFromMs(500) },
    });
    await hanging.work();
    expect(await hanging.view()).toMatchObject({
      state: RunState.INCOMPLETE,
      endReason: RunEndReason.DEADLINE,
      turnCount: 1,
    });
    expect(hanging.router.aborted).toHaveLength(1);
  });

  test("LOOP-1 an answer that was cut off is incomplete", async () => {
    const run = await openRun({ turns: [{ text: "It was a dark and", finishReason: "length" }] });
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.INCOMPLETE,
      endReason: RunEndReason.MAX_OUTPUT_TOKENS,
      outputText: "It was a dark and",
    });
  });

  test("LOOP-1 an error of the model that no retry mends fails the run and says why", async () => {
    const run = await openRun({ turns: [{ calls: [double(1)] }] });
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.FAILED, endReason: RunEndReason.MODEL_ERROR });
    expect((await run.view()).error).toContain("ran out");
  });

  test("LOOP-2 required holds for the first turn only", async () => {
    const options = { toolChoice: { choice: { case: "mode" as const, value: ToolChoiceMode.REQUIRED } } };
    const run = await openRun({ turns: [{ calls: [double(1)] }, { text: "done" }], options });
    await run.work();
    expect(run.asked.map(({ toolChoice }) => toolChoice?.type)).toEqual(["required", "auto"]);
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED });
  });

  test("LOOP-2 a model that does not obey is asked once more, then the run fails", async () => {
    const options = { toolChoice: { choice: { case: "forcedTool" as const, value: "twice" } } };
    const run = await openRun({ turns: [{ text: "I will not" }], options });
    await run.work();
    expect(run.asked.map(({ toolChoice }) => toolChoice)).toEqual(Array(2).fill({ type: "tool", toolName: "double" }));
    expect(await run.view()).toMatchObject({
      state: RunState.FAILED,
      endReason: RunEndReason.TOOL_CHOICE_UNMET,
      turnCount: 0,
    });
  });

  test("LOOP-2 LOOP-12 an answer that does not obey is no part of the run, but was paid for: its usage counts", async () => {
    const options = { toolChoice: { choice: { case: "mode" as const, value: ToolChoiceMode.REQUIRED } } };
    const price = usdPrice(1_000, 10_000);
    const setting = { turns: [], options, agent: { model: { provider: "fake", model: "m", price } } };
    const stubborn = () => createFakeModel("m", () => ({ text: "I will not" })); // 10 tokens read and 5 written an answer
    const run = await openRun({ ...setting, model: stubborn() });
    await run.work();
    const dropped = run.events().flatMap(({ event }) => (event.case === "answerDropped" ? [event.value] : []));
    expect(dropped).toMatchObject([
      { turn: 1, attempt: 1, model: "m", usage: { inputTokens: 10n, outputTokens: 5n } },
      { turn: 1, attempt: 2 },
    ]);
    expect(await run.view()).toMatchObject({
      endReason: RunEndReason.TOOL_CHOICE_UNMET,
      turnCount: 0,
      usage: { inputTokens: 20n },
    });
    expect((await run.view()).usage?.cost).toMatchObject(usd(0.12));
    const short = await openRun({ ...setting, model: stubborn(), limits: { maxTokens: 15n } });
    expect(await short.work()).toBe("ended");
    expect(await short.view()).toMatchObject({
      state: RunState.INCOMPLETE,
      endReason: RunEndReason.MAX_TOKENS,
      turnCount: 0,
    });
    expect(short.asked).toHaveLength(1);
  });

  test("LOOP-2 under none a call gets an error and is not executed", async () => {
    const options = { toolChoice: { choice: { case: "mode" as const, value: ToolChoiceMode.NONE } } };
    const run = await openRun({ turns: [{ calls: [double(1)] }, { text: "so be it" }], options });
    await run.work();
    expect(run.router.requests).toEqual([]);
    expect(await run.results()).toMatchObject([{ result: { isError: true } }]);
    expect(run.asked[1]?.toolChoice).toEqual({ type: "none" });
  });

  test("LOOP-3 allowed_tools narrows what is called, by alias too, and hides nothing", async () => {
    const calls = [double(1), { name: "fail" }, { name: "nothing" }];
    const run = await openRun({
      turns: [{ calls }, { text: "done" }],
      options: { allowedTools: { names: ["twice"] } },
    });
    await run.work();
    expect(run.router.executed).toEqual(["double"]);
    expect((await run.results()).map(({ result }) => result?.outputJson)).toEqual([
      "2",
      JSON.stringify({ error: 'tool "fail" is not in the allowed_tools list' }),
      JSON.stringify({ error: 'there is no tool "nothing"' }),
    ]);
    expect(run.asked[0]?.tools?.map(({ name }) => name)).toEqual(["double", "fail"]);
  });

  test("LOOP-3 an empty allowed_tools allows none, and an absent one all", async () => {
    const turns = [{ calls: [double(1)] }, { text: "done" }];
    const none = await openRun({ turns, options: { allowedTools: { names: [] } } });
    await none.work();
    expect(none.router.executed).toEqual([]);
    expect(await none.results()).toMatchObject([
      { result: { outputJson: JSON.stringify({ error: 'tool "double" is not in the allowed_tools list' }) } },
    ]);
    const all = await openRun({ turns, options: {} });
    await all.work();
    expect(all.router.executed).toEqual(["double"]);
  });

  test("LOOP-3 an entry may be a reference", async () => {
    const [read, write] = ["read", "write"].map(
      (name): FakeTool => ({ name: `files__${name}`, reference: `@files/${name}`, answer: () => name }),
    );
    const calls = [{ name: "files__read" }, { name: "files__write" }];
    const options = { allowedTools: { names: ["@files/read"] } };
    const run = await openRun({ turns: [{ calls }, { text: "done" }], tools: [read!, write!], options });
    await run.work();
    expect(run.router.executed).toEqual(["files__read"]);
  });

  test("LOOP-3 a tool of the client that is not allowed is not handed to it", async () => {
    const options = { allowedTools: { names: ["double"] }, functionTools: [{ name: "ask" }] };
    const run = await openRun({ turns: [{ calls: [{ name: "ask" }] }, { text: "done" }], options });
    expect(await run.work()).toBe("ended");
    expect(await run.results()).toMatchObject([{ result: { isError: true } }]);
  });
});
