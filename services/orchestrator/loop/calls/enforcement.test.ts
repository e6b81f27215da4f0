import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type ProvidedResult, ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { RunEndReason, RunState, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { createFakeModel } from "../../testing/fakes/fake-model.ts";
import type { FakeTool } from "../../testing/fakes/fake-router.ts";
import { double, openRun, tools } from "../../testing/loop-run.ts";

const error = (text: string) => JSON.stringify({ error: text });
const usage = (tokens: number) => ({
  inputTokens: BigInt(tokens),
  outputTokens: 0n,
  cost: { currencyCode: "USD", micros: 0n },
});
const tool = (name: string, result: Partial<Pick<ProvidedResult, "callCount">> & { tokens?: number }): FakeTool => ({
  name,
  answer: () => {
    const { callCount = 0, tokens = 0 } = result;
    return create(ProvidedResultSchema, { outputJson: "1", callCount, usage: usage(tokens) });
  },
});
/** Each answer of the fake model reads 10 tokens and writes 5. */
const tokensOfTurn = 15;
const calling = (...names: string[]) =>
  createFakeModel("m", (_, count) => ({
    calls: names.map((name, n) => ({ id: `c${count}_${n}`, name, input: "{}" })),
  }));
const outputs = async (run: Awaited<ReturnType<typeof openRun>>) =>
  (await run.results()).map(({ result }) => result?.outputJson);

describe("budgets of a run", () => {
  test("LOOP-12 once the model's answer has used them up, its calls are told so, and nothing begins", async () => {
    const run = await openRun({ turns: [], model: calling("double"), limits: { maxTokens: BigInt(tokensOfTurn) } });
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.INCOMPLETE,
      endReason: RunEndReason.MAX_TOKENS,
      turnCount: 1,
    });
    expect(run.router.executed).toEqual([]);
    expect(await outputs(run)).toEqual([error("the run's tokens (max_tokens) are used up")]);
    expect(run.refused).toEqual(["double: the run's tokens (max_tokens) are used up"]);
  });

  test("LOOP-5 LOOP-12 once they are used up the client is not asked either, and the run does not park", async () => {
    const options = { functionTools: [{ name: "ask" }] };
    const limits = { maxTokens: BigInt(tokensOfTurn) };
    const run = await openRun({ turns: [], model: calling("ask"), options, limits });
    expect(await run.work()).toBe("ended");
    expect(await run.view()).toMatchObject({ endReason: RunEndReason.MAX_TOKENS });
  });

  test("LOOP-12 what one call uses up leaves nothing for the ones after it in the same turn", async () => {
    const run = await openRun({
      turns: [],
      model: calling("big", "big"),
      tools: [tool("big", { tokens: 1_000 })],
      options: { parallelToolCalls: false },
      limits: { maxTokens: 500n },
    });
    await run.work();
    expect(run.router.executed).toEqual(["big"]);
    expect(await outputs(run)).toEqual(["1", error("the run's tokens (max_tokens) are used up")]);
  });

  test("LOOP-1 LOOP-17 calls that were made on the behalf of a call count in max_tool_calls", async () => {
    const run = await openRun({
      turns: [],
      model: calling("busy"),
      tools: [tool("busy", { callCount: 2 })],
      limits: { maxToolCalls: 5 },
    });
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.INCOMPLETE,
      endReason: RunEndReason.MAX_TOOL_CALLS,
      turnCount: 2,
    });
    expect(run.router.executed).toEqual(["busy", "busy"]);
  });
});

describe("a forced tool", () => {
  const options = { toolChoice: { choice: { case: "forcedTool" as const, value: "twice" } } };

  test("LOOP-2 is the only one that its turn calls: another beside it is not executed", async () => {
    const calls = [double(1), { name: "fail" }];
    const run = await openRun({ turns: [{ calls }, { calls: [{ name: "fail" }] }, { text: "done" }], options });
    await run.work();
    expect(run.router.executed).toEqual(["double", "fail"]);
    expect((await outputs(run))[1]).toBe(error('tool "fail" may not be called: tool_choice forces "twice"'));
    expect(run.router.requests.map(({ bounds }) => bounds?.forcedTool)).toEqual(["twice", ""]);
  });
});

describe("what the router is told", () => {
  test("LOOP-1 LOOP-12 is the turn, the call's number and what is left, whichever process dispatches it", async () => {
    const turns = [{ calls: [double(1), double(2)] }, { calls: [double(3)] }, { text: "done" }];
    const run = await openRun({ turns, tools, limits: { maxTurns: 5, maxToolCalls: 7, maxTokens: 10_000n } });
    const { append } = run.log;
    run.log.append = async ({ event, ...claim }, position) => {
      if (event.event.case === "turnCommitted" && event.event.value.turn === 2) throw new Error("killed");
      return append({ event, ...claim }, position);
    };
    await expect(run.work()).rejects.toThrow("killed");
    run.log.append = append;
    await run.work("heir");
    const bounds = run.router.requests.map((request) => request.bounds);
    const limits = { maxTurns: 5, maxToolCalls: 7, toolChoice: ToolChoiceMode.UNSPECIFIED, forcedTool: "" };
    expect(bounds).toMatchObject([
      { turn: 1, call: 1, ...limits },
      { turn: 1, call: 2, ...limits },
      { turn: 2, call: 3, ...limits },
    ]);
    const left = run.router.requests.map(({ bounds }) => Number(bounds?.tokensLeft));
    expect(left[2]).toBeLessThan(left[0]!);
  });

  test("LOOP-2 is the mode of tool_choice, and without limits nothing of them", async () => {
    const options = { toolChoice: { choice: { case: "mode" as const, value: ToolChoiceMode.REQUIRED } } };
    const run = await openRun({ turns: [{ calls: [double(1)] }, { text: "done" }], options });
    await run.work();
    const [request] = run.router.requests;
    expect(request?.bounds).toMatchObject({ toolChoice: ToolChoiceMode.REQUIRED, maxTurns: 10 });
    expect(request?.bounds?.maxToolCalls).toBeUndefined();
    expect(request?.bounds?.tokensLeft).toBeUndefined();
    expect(request?.bounds?.costLeft).toBeUndefined();
  });
});

describe("for any model, limits and crashes", () => {
  const scenario = fc.record({
    turns: fc.array(fc.array(fc.constantFrom("plain", "busy", "big"), { minLength: 1, maxLength: 4 }), {
      maxLength: 6,
    }),
    maxTurns: fc.integer({ min: 1, max: 5 }),
    maxToolCalls: fc.integer({ min: 1, max: 8 }),
    maxTokens: fc.integer({ min: 1, max: 400 }),
    parallel: fc.boolean(),
    crashes: fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 3 }),
  });
  const busyCalls = 2;

  test("LOOP-1 LOOP-12 LOOP-13 no limit is exceeded by more than the calls in flight, and every call is executed once at most", async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ turns, maxTurns, maxToolCalls, maxTokens, parallel, crashes }) => {
        const model = createFakeModel("m", ({ prompt }) => {
          const turn = prompt.filter(({ role }) => role === "assistant").length;
          const names = turns[turn];
          if (names === undefined) return { text: "done" };
          return { calls: names.map((name, n) => ({ id: `t${turn}_${n}`, name, input: "{}" })) };
        });
        const run = await openRun({
          turns: [],
          model,
          tools: [tool("plain", {}), tool("busy", { callCount: busyCalls }), tool("big", { tokens: 60 })],
          options: { parallelToolCalls: parallel },
          limits: { maxTurns, maxToolCalls, maxTokens: BigInt(maxTokens), maxParallelCalls: 2 },
        });
        const { append } = run.log;
        for (const survives of crashes) {
          let written = 0;
          run.log.append = async ({ event, ...claim }, position) => {
            written += 1;
            if (written > survives) throw new Error("killed");
            return append({ event, ...claim }, position);
          };
          const outcome = await run.work(`process ${survives}`).catch(() => "killed");
          run.log.append = append;
          if (outcome === "ended") break;
        }
        if ((await run.view()).endTime === undefined) await run.work("heir");
        const { state: status, turnCount: taken } = await run.view();
        const inFlight = parallel ? 2 : 1;
        const { requests, executed } = run.router;
        expect(taken).toBeLessThanOrEqual(maxTurns);
        expect(executed.length).toBe(new Set(requests.map(({ callId }) => callId)).size);
        expect(executed.length).toBeLessThanOrEqual(maxToolCalls);
        const onBehalf = executed.filter((name) => name === "busy").length * busyCalls;
        const inTurn = Math.max(0, ...turns.map((names) => names.filter((name) => name === "busy").length));
        expect(executed.length + onBehalf).toBeLessThanOrEqual(maxToolCalls + inTurn * busyCalls);
        const spent = executed.filter((name) => name === "big").length * 60 + taken * tokensOfTurn;
        expect(spent).toBeLessThan(maxTokens + tokensOfTurn + Math.max(inFlight, crashes.length > 0 ? 4 : 0) * 60);
        expect([RunState.COMPLETED, RunState.INCOMPLETE]).toContain(status);
        for (const { bounds } of requests) {
          expect(bounds!.call).toBeLessThanOrEqual(maxToolCalls);
          expect(bounds!.turn).toBeLessThanOrEqual(maxTurns);
        }
      }),
      { numRuns: 60 },
    );
  });
});
