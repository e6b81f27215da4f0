import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter } from "../loop/fake-router.fixture.ts";
import { openWorld, userItem, type WorldOptions } from "../orchestrator.fixture.ts";

const model = { $typeName: "toolbus.agent.v1.Model" as const, provider: "scripted", model: "echo", contextWindow: 0 };
const price = { $typeName: "toolbus.agent.v1.Price" as const, inputPerMillion: 0, outputPerMillion: 0 };

/** How a run ends with these settings of its agent, and this max_cost of its own. */
async function ending(setting: Omit<WorldOptions, "router">, maxCost = 0) {
  await using world = await openWorld({ router: createFakeRouter([]), ...setting });
  await world.writeScript("echo", { turns: [{ text: "You said {{input}}." }] });
  await world.openOrchestrator("one");
  const { run } = await world.runs.createRun({
    agent: "echo",
    input: [userItem("hi")],
    options: { limits: { maxCost } },
  });
  const isOver = async () => {
    const { run: standing } = await world.runs.getRun({ runId: run!.id });
    return standing?.endTime && standing;
  };
  return await until(isOver, { what: "the end of the run", timeoutMs: 20_000 });
}

describe("max_cost", () => {
  test("LOOP-12 of an agent whose model has no price fails the run before the model is asked, and says what is missing", async () => {
    const ended = await ending({ limits: { maxCost: 2 } });
    expect(ended).toMatchObject({ state: RunState.FAILED, reason: "price_missing", turns: 0 });
    expect(ended.error).toBe(
      'max_cost is 2, but the model "echo" of agent echo has no price: no cost would ever reach it',
    );
  });

  test("LOOP-12 of a run is refused when it is created, with what to do, also for the want of the fallback's price", async () => {
    await expect(ending({}, 0.5)).rejects.toMatchObject({
      code: Code.FailedPrecondition,
      rawMessage:
        'options.limits.max_cost is 0.5, but the model "echo" of agent echo has no price: no cost would ever reach it; ' +
        "give it one in the agent's configuration (0 for what is free), or leave max_cost out",
    });
    const half = { model: { ...model, price }, fallbackModel: { ...model, model: "other" } };
    await expect(ending({ agent: half }, 0.5)).rejects.toThrow('the model "other" of agent echo has no price');
  });

  test("LOOP-12 with a price, of nothing too, is a limit like any other; without a limit no price is needed", async () => {
    expect(await ending({ agent: { model: { ...model, price } } }, 0.5)).toMatchObject({ state: RunState.COMPLETED });
    expect(await ending({})).toMatchObject({ state: RunState.COMPLETED });
  });
});
