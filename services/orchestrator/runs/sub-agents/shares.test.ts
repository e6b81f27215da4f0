import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LimitsSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { usd } from "#runtime/money/testing/dollars.ts";
import { limitsFrom } from "../../loop/limits/limits.ts";
import { createFakeModel } from "../../testing/fakes/fake-model.ts";
import type { FakeTool, SeenCall } from "../../testing/fakes/fake-router.ts";
import { openRun } from "../../testing/loop-run.ts";
import { callsLeft, childLimits, faultOfCaller } from "./child-limits.ts";

const answerTokens = 60n;
const answerMicros = usd(0.25).micros;
const children = 8;

/** A called agent that never has enough: it answers and calls until its own limits end it, which is looked at between answers. */
function createGreedy(executionType: ExecutionType) {
  const used = { tokens: 0n, micros: 0n, calls: 0 };
  const greedy: FakeTool = {
    name: "agent_greedy",
    tool: { executionType },
    async answer(_, _signal, { bounds }: SeenCall) {
      const caller = { limits: limitsFrom(undefined, undefined), state: undefined, bounds };
      const fault = faultOfCaller(caller);
      if (fault !== undefined) throw new Error(fault);
      const limits = create(LimitsSchema, childLimits(undefined, caller, Number.POSITIVE_INFINITY));
      const isOver = (answers: number) =>
        (limits.maxTokens !== undefined && answerTokens * BigInt(answers) >= limits.maxTokens) ||
        (limits.maxCost !== undefined && answerMicros * BigInt(answers) >= limits.maxCost.micros);
      let answers = 1;
      while (!isOver(answers) && answers < 100) answers += 1;
      const calls = Math.min(callsLeft(caller), 100);
      const cost = { currencyCode: "USD", micros: answerMicros * BigInt(answers) };
      used.tokens += answerTokens * BigInt(answers);
      used.micros += cost.micros;
      used.calls += calls;
      await new Promise(setImmediate);
      const usage = { inputTokens: answerTokens * BigInt(answers), outputTokens: 0n, cost };
      return create(ProvidedResultSchema, { outputJson: "1", callCount: calls, usage });
    },
  };
  return { greedy, used };
}

const createCaller = (plain: number) =>
  createFakeModel("m", () => ({
    calls: [
      ...Array.from({ length: children }, (_, n) => ({ id: `c${n}`, name: "agent_greedy", input: "{}" })),
      ...Array.from({ length: plain }, (_, n) => ({ id: `p${n}`, name: "plain", input: "{}" })),
    ],
  }));
const plainTool: FakeTool = { name: "plain", answer: () => 1 };
const tokensOfTurn = 15;

describe("calls of one turn that can spend", () => {
  test.each([
    ["agents", ExecutionType.CUSTOM],
    ["hosted modules", ExecutionType.HOSTED],
  ])("LOOP-12 LOOP-17 have a share each of what is left, and none of them the whole: %s", async (_, executionType) => {
    const { greedy } = createGreedy(executionType);
    const limits = { maxTokens: 1_500n, maxCost: usd(100), maxToolCalls: 26, maxTurns: 1 };
    const run = await openRun({ turns: [], model: createCaller(2), tools: [greedy, plainTool], limits });
    await run.work();
    const bounds = run.router.requests.map((request) => ({ name: request.name, ...request.bounds! }));
    const first = bounds.filter(({ name }) => name === "agent_greedy").slice(0, children);
    const left = Number(bounds.find(({ name }) => name === "plain")?.tokensLeft);
    expect(left).toBeGreaterThan(0);
    for (const { tokensLeft, costLeft, call, maxToolCalls } of first) {
      expect(Number(tokensLeft)).toBeLessThanOrEqual(Math.ceil(1_500 / children));
      expect(costLeft?.micros).toBeLessThanOrEqual(usd(100 / children).micros);
      expect(maxToolCalls! - call).toBe(2); // 10 of 26 are the model's
    }
  });

  test("LOOP-12 LOOP-13 LOOP-17 exceed no limit by more than an answer in flight each, and that of calls never, also when a process dies in between", async () => {
    const scenario = fc.record({
      maxTokens: fc.integer({ min: 1, max: 4_000 }),
      maxCost: fc.integer({ min: 1, max: 12 }),
      maxToolCalls: fc.integer({ min: 1, max: 40 }),
      maxParallelCalls: fc.integer({ min: 1, max: children }),
      plain: fc.integer({ min: 0, max: 2 }),
      dies: fc.integer({ min: 2, max: 14 }),
    });
    await fc.assert(
      fc.asyncProperty(scenario, async ({ plain, dies, maxTokens, maxCost, ...more }) => {
        const { greedy, used } = createGreedy(ExecutionType.CUSTOM);
        const limits = { maxTokens: BigInt(maxTokens), maxCost: usd(maxCost), maxTurns: 3, ...more };
        const run = await openRun({ turns: [], model: createCaller(plain), tools: [greedy, plainTool], limits });
        const { append } = run.log;
        let written = 0;
        run.log.append = async (event, position) => {
          written += 1;
          if (written === dies) throw new Error("killed");
          return append(event, position);
        };
        if ((await run.work().catch(() => "killed")) === "killed") await run.work("heir");
        const { turnCount: turns } = await run.view();
        expect(run.router.executed.length + used.calls).toBeLessThanOrEqual(more.maxToolCalls);
        expect(Number(used.tokens)).toBeLessThan(maxTokens + turns * tokensOfTurn + children * Number(answerTokens));
        expect(used.micros).toBeLessThan(usd(maxCost).micros + BigInt(children) * answerMicros);
      }),
      { numRuns: 80 },
    );
  });
});
