import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { usd } from "#runtime/money/testing/dollars.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { openProcess } from "../orchestrator-process.ts";
import { follow, openWorld, userItem, type World } from "../test-orchestrator.ts";

/** Of the calls of `step`, those that were not let go on yet; each answers once, and what it used is told with it. */
const waiting = new Map<string, () => void>();
const used = { inputTokens: 300n, outputTokens: 100n, cost: usd(0.25) };
const router = createFakeRouter([
  {
    name: "step",
    answer: (_, _signal, { callId }) =>
      new Promise((resolve) => {
        waiting.set(callId, () =>
          resolve(create(ProvidedResultSchema, { outputJson: "1", usage: used, callCount: 1 })),
        );
      }),
  },
]);

let world: World;
beforeAll(async () => {
  world = await openWorld({ router });
  const turn = { calls: [{ name: "step" }] };
  await world.writeScript("stepper", { turns: [...Array(20).fill(turn), { text: "never" }] });
});
afterAll(() => world[Symbol.asyncDispose]());

/** Kills the process that works on the run in the middle of each call; the next one finds the call and its answer. */
async function runKilled(limits: object) {
  let victim = await openProcess(world, "victim");
  const { run } = await world.runs.createRun({ agent: "stepper", input: [userItem("go")], options: { limits } });
  const runId = run!.id;
  let isOver = false;
  const ended = follow(world.runs, runId).finally(() => {
    isOver = true;
  });
  const requests = () => router.requests.filter((request) => request.runId === runId);
  const calls = () => new Map(requests().map((request) => [request.callId, request]));
  for (let seen = 0; ; ) {
    await until(() => isOver || calls().size > seen, { timeoutMs: 60_000, what: "a call, or the end" });
    if (isOver) break;
    seen = calls().size;
    const heir = await openProcess(world, `heir-${seen}`);
    await victim[Symbol.asyncDispose](); // SIGKILL
    victim = heir;
    waiting.get([...calls().keys()].at(-1)!)?.();
  }
  await ended;
  const { run: last } = await world.runs.getRun({ runId });
  await victim[Symbol.asyncDispose]();
  return { run: last!, bounds: [...calls().values()].map(({ bounds }) => bounds!), executed: calls().size };
}

describe("when an orchestrator is killed in the middle of each call", { timeout: 120_000 }, () => {
  test("LOOP-1 LOOP-13 turns count from the log: the run ends at max_turns, and no turn has a number twice", async () => {
    const { run, bounds, executed } = await runKilled({ maxTurns: 3 });
    expect(run).toMatchObject({ state: RunState.INCOMPLETE, endReason: RunEndReason.MAX_TURNS, turnCount: 3 });
    expect(executed).toBe(3);
    expect(bounds.map(({ turn }) => turn)).toEqual([1, 2, 3]);
  });

  test("LOOP-1 LOOP-13 LOOP-17 calls count from the log, those made on their behalf too", async () => {
    const { run, bounds, executed } = await runKilled({ maxToolCalls: 5 });
    expect(run).toMatchObject({ state: RunState.INCOMPLETE, endReason: RunEndReason.MAX_TOOL_CALLS });
    expect(executed).toBe(3);
    expect(bounds.map(({ call }) => call)).toEqual([1, 3, 5]);
  });

  test("LOOP-12 LOOP-13 tokens and cost count from the log, and the router is told what is left", async () => {
    const { run, bounds, executed } = await runKilled({ maxTokens: 1_000n });
    expect(run).toMatchObject({ state: RunState.INCOMPLETE, endReason: RunEndReason.MAX_TOKENS });
    expect(executed).toBe(3);
    const left = bounds.map(({ tokensLeft }) => Number(tokensLeft));
    expect(left[0]! - left[1]!).toBeGreaterThanOrEqual(400);
    expect(left[1]! - left[2]!).toBeGreaterThanOrEqual(400);
  });
});
