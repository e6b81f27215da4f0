import type { LanguageModelV4 } from "@ai-sdk/provider";
import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { usd, usdPrice } from "#runtime/money/testing/dollars.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openJournal } from "../../log/journal.ts";
import { createFakeModel } from "../../testing/fakes/fake-model.ts";
import type { FakeTool } from "../../testing/fakes/fake-router.ts";
import { double, openRun, tools } from "../../testing/loop-run.ts";

const usage = { inputTokens: 600n, outputTokens: 400n, cost: usd(0.25) };
const expensive: FakeTool = {
  name: "expensive",
  answer: () => create(ProvidedResultSchema, { outputJson: "1", usage }),
};
const agent = { model: { provider: "fake", model: "m", price: usdPrice(1_000, 10_000) } };

/** Calls the same tool in every turn; each costs 0.01 + 0.05. */
const createCaller = (name: string) =>
  createFakeModel("m", (_, count) => ({ calls: [{ id: `c${count}`, name, input: '{"value":1}' }] }));

describe("budgets", () => {
  test("LOOP-1 LOOP-12 max_cost ends the run as soon as the log shows that it is used up", async () => {
    const run = await openRun({ turns: [], model: createCaller("double"), agent, limits: { maxCost: usd(0.15) } });
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.INCOMPLETE,
      endReason: RunEndReason.MAX_COST,
      turnCount: 3,
    });
    expect((await run.view()).usage?.cost).toMatchObject(usd(0.18));
  });

  test("LOOP-12 max_tokens counts what was read and written, and what calls used on the run's behalf", async () => {
    const run = await openRun({
      turns: [],
      model: createCaller("expensive"),
      tools: [expensive],
      limits: { maxTokens: 2_000n },
    });
    await run.work();
    expect(await run.view()).toMatchObject({ endReason: RunEndReason.MAX_TOKENS, turnCount: 2 });
    expect((await run.view()).usage).toMatchObject({ inputTokens: 1_220n, outputTokens: 810n });
  });

  test("LOOP-18 a run whose models have written all that it lets them is incomplete", async () => {
    const options = { modelSettings: { maxOutputTokens: 800 } };
    const run = await openRun({ turns: [], model: createCaller("expensive"), tools: [expensive], options });
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.INCOMPLETE,
      endReason: RunEndReason.MAX_OUTPUT_TOKENS,
      turnCount: 2,
    });
  });

  test("LOOP-12 a provider that tells no usage is held to max_tokens and max_cost by an estimate", async () => {
    const nothing = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
    const usage = { inputTokens: nothing, outputTokens: { total: undefined, text: undefined, reasoning: undefined } };
    const silent = createCaller("double");
    const model: LanguageModelV4 = {
      ...silent,
      async doStream(call) {
        const { stream } = await silent.doStream(call);
        const parts = await Array.fromAsync(stream);
        const untold = parts.map((part) => (part.type === "finish" ? { ...part, usage } : part));
        return { stream: ReadableStream.from(untold) };
      },
    };
    const byTokens = await openRun({ turns: [], model, limits: { maxTokens: 100n } });
    await byTokens.work();
    expect(await byTokens.view()).toMatchObject({ endReason: RunEndReason.MAX_TOKENS });
    const byCost = await openRun({ turns: [], model, agent, limits: { maxCost: usd(0.15) } });
    await byCost.work();
    expect(await byCost.view()).toMatchObject({ endReason: RunEndReason.MAX_COST });
  });

  test("LOOP-12 the cost of calls counts, too", async () => {
    const run = await openRun({
      turns: [],
      model: createCaller("expensive"),
      tools: [expensive],
      limits: { maxCost: usd(0.4) },
    });
    await run.work();
    expect(await run.view()).toMatchObject({ endReason: RunEndReason.MAX_COST, turnCount: 2 });
  });

  test("LOOP-12 a cost of calls in another currency uses max_cost up: nobody can tell what is left of it", async () => {
    const foreign = { ...usage, cost: { currencyCode: "EUR", micros: 1n } };
    const setting = {
      name: "expensive",
      answer: () => create(ProvidedResultSchema, { outputJson: "1", usage: foreign }),
    };
    const open = (limits: object) =>
      openRun({ turns: [{ calls: [{ name: "expensive" }] }, { text: "done" }], agent, tools: [setting], limits });
    const limited = await open({ maxCost: usd(100) });
    await limited.work();
    expect(await limited.view()).toMatchObject({
      state: RunState.INCOMPLETE,
      endReason: RunEndReason.MAX_COST,
      turnCount: 1,
    });
    const free = await open({});
    await free.work();
    expect(await free.view()).toMatchObject({ state: RunState.COMPLETED, turnCount: 2 });
    expect((await free.view()).usage?.cost, "two currencies have no sum").toBeUndefined();
  });

  test("LOOP-12 what is free costs 0, and what has no price has no cost", async () => {
    const costOf = async (model: object) => {
      const run = await openRun({
        turns: [{ text: "done" }],
        agent: { model: { provider: "fake", model: "m", ...model } },
      });
      await run.work();
      return (await run.view()).usage?.cost;
    };
    expect(await costOf({ price: usdPrice(0, 0) })).toMatchObject(usd(0));
    expect(await costOf({})).toBeUndefined();
  });

  test("LOOP-12 LOOP-13 a budget survives a crash at each event: never more than the calls in flight is spent over it", async () => {
    for (let survives = 2; survives < 9; survives += 1) {
      const run = await openRun({
        turns: [],
        model: createCaller("expensive"),
        tools: [expensive],
        limits: { maxToolCalls: 3, maxTokens: 2_500n },
      });
      const { append } = run.log;
      let written = 0;
      run.log.append = async ({ event, ...claim }, position) => {
        written += 1;
        if (written === survives) throw new Error("killed");
        return append({ event, ...claim }, position);
      };
      const outcome = await run.work().catch(() => "killed");
      if (outcome === "killed") await run.work("heir");
      const { turnCount: turns, endReason } = await run.view();
      expect({ turns, endReason }).toEqual({ turns: 3, endReason: RunEndReason.MAX_TOKENS });
      expect(run.router.executed.length).toBe(3);
    }
  });

  test("LOOP-1 LOOP-13 max_tool_calls and max_turns count from the log, whoever took the turns", async () => {
    const turns = Array.from({ length: 6 }, () => ({ calls: [double(1)] }));
    const run = await openRun({ turns, tools, limits: { maxTurns: 4 } });
    const { append } = run.log;
    let commits = 0;
    run.log.append = async ({ event, ...claim }, position) => {
      if (event.event.case === "turnCommitted") commits += 1;
      if (commits === 3) throw new Error("killed");
      return append({ event, ...claim }, position);
    };
    await expect(run.work()).rejects.toThrow("killed");
    run.log.append = append;
    await run.work("heir");
    expect(await run.view()).toMatchObject({ endReason: RunEndReason.MAX_TURNS, turnCount: 4 });
  });

  test("LOOP-3 LOOP-12 the router is told with each call what it can enforce once more: names, deadline, the agent's revision", async () => {
    const run = await openRun({
      turns: [{ calls: [double(1)] }, { text: "done" }],
      options: { allowedTools: { names: ["twice"] } },
      limits: { timeout: durationFromMs(60_000) },
    });
    await run.work();
    const { acceptedAtMs } = (await openJournal(run.log, "r", systemClock)).state!;
    const [request] = run.router.requests;
    expect(request).toMatchObject({ allowedTools: { names: ["twice"] }, contextRevision: 1, runId: "r" });
    expect(timestampMs(request!.deadline!)).toBe(acceptedAtMs + 60_000);
  });
});
