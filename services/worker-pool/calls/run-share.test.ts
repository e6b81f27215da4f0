import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { RunSchema, RunState, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { type CreateRunRequest, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { type CallToolRequest, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { usd } from "#runtime/money/testing/dollars.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { decodeRunContext } from "#runtime/rpc/run-context.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { until } from "#runtime/time/until.ts";
import { openPoolOnBus, type PoolOnBus } from "../testing/pool-on-bus.ts";

/** Processes start slowly on a machine that does much else. */
vi.setConfig({ testTimeout: 60_000 });

const HOSTED = `
export default {
  tools: [
    { name: "reads", run: async ({ times }, { registry }) => {
        for (let n = 0; n < times; n++) await registry.call("look", { n });
        return "read"; } },
    { name: "thinks", run: async ({ times }, { model }) => {
        const told = [];
        for (let n = 0; n < times; n++)
          told.push(await model.generate({ prompt: "think" }).then(({ text }) => text, (error) => error.message));
        return told; } },
  ],
};
`;

const usage = { inputTokens: 30n, outputTokens: 10n, cost: usd(0.25) };
const calls: CallToolRequest[] = [];
const runs: CreateRunRequest[] = [];
const ended = create(RunSchema, {
  id: "r",
  sessionId: "x",
  state: RunState.COMPLETED,
  outputText: "a thought",
  usage,
});

let pool: PoolOnBus;
beforeAll(async () => {
  pool = await openPoolOnBus();
  await mkdir(join(pool.directory, "hosted"), { recursive: true });
  await writeFile(join(pool.directory, "hosted", "share.mjs"), HOSTED);
  await serveOnNats(pool.bus, {
    service: "tool-router",
    routes: (router) => {
      router.service(ToolService, {
        async *callTool(request) {
          calls.push(request);
          yield { event: { case: "result", value: { outputJson: "1", usage, callCount: 1 } } };
        },
      });
      router.service(SessionService, { closeSession: () => ({}) });
    },
  });
  await serveOnNats(pool.bus, {
    service: "orchestrator",
    routes: (router) => {
      router.service(RunService, {
        createRun(request) {
          runs.push(request);
          return { run: ended };
        },
        getRun: () => ({ run: ended }),
        async *watchRun() {
          yield { update: { case: "event", value: { event: { case: "ended", value: { outputText: "" } } } } };
        },
      });
    },
  });
  const offered = async () =>
    (await pool.provider.getProvidedTools({})).sources.some((one) => one.source === "share" && one.available);
  await until(offered, { timeoutMs: 20_000, what: "the module to be offered" });
});
afterAll(() => pool[Symbol.asyncDispose]());

const scope = { sessionId: "s", agent: "a", contextRevision: 4, principal: "ada", runId: "run_1" };
const bounds = {
  turn: 2,
  maxTurns: 9,
  call: 5,
  maxToolCalls: 7,
  toolChoice: ToolChoiceMode.REQUIRED,
  forcedTool: "reads",
};

async function run(tool: string, times: number, more: object) {
  const { events, value } = await pool.call({ source: { name: "share" }, tool, args: { times }, scope, ...more });
  const last = events.at(-1);
  return { value, told: last?.case === "result" ? last.value : undefined };
}

describe("what a hosted tool has done on its call's behalf", () => {
  test("LOOP-1 LOOP-3 LOOP-12 WORK-12 is called within what the run allows and leaves, each call with its number, and its sum is told", async () => {
    const left = { ...bounds, tokensLeft: 100n, costLeft: usd(2) };
    const { told } = await run("reads", 2, { bounds: left, allowedTools: ["look"] });
    const place = { turn: 2, maxTurns: 9, maxToolCalls: 7, toolChoice: ToolChoiceMode.UNSPECIFIED, forcedTool: "" };
    const allowedTools = [{ names: ["look"] }];
    expect(calls.map(({ runId }) => runId)).toEqual(["run_1", "run_1"]);
    expect(calls.map(({ runContext }) => decodeRunContext(runContext))).toMatchObject([
      { allowedTools, bounds: { ...place, call: 6, tokensLeft: 100n, costLeft: usd(2) } },
      { allowedTools, bounds: { ...place, call: 8, tokensLeft: 60n, costLeft: usd(1.75) } },
    ]);
    expect(told).toMatchObject({ callCount: 4, usage: { inputTokens: 60n, outputTokens: 20n, cost: usd(0.5) } });
  });

  test("LOOP-12 WORK-12 asks models within what is left, and none once nothing is", async () => {
    const { value, told } = await run("thinks", 3, { bounds: { ...bounds, tokensLeft: 80n, costLeft: usd(9) } });
    expect(value).toEqual(["a thought", "a thought", "the run's budget is used up: no model is asked"]);
    expect(runs.map(({ options }) => options?.limits)).toMatchObject([
      { maxTokens: 80n, maxCost: usd(9) },
      { maxTokens: 40n, maxCost: usd(8.75) },
    ]);
    expect(runs.every(({ options }) => (msFromDuration(options?.limits?.timeout) ?? 0) > 0)).toBe(true);
    expect(told).toMatchObject({ callCount: 0, usage: { inputTokens: 60n, outputTokens: 20n } });
  });

  test("LOOP-12 WORK-12 without limits of the run has none but the time of its call", async () => {
    runs.length = 0;
    await run("thinks", 1, {});
    expect(runs[0]?.options?.limits?.timeout).toBeDefined();
    expect(runs[0]?.options?.limits?.maxTokens).toBeUndefined();
    expect(runs[0]?.options?.limits?.maxCost).toBeUndefined();
  });
});
