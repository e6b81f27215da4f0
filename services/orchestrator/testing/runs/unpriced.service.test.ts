import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { PriceSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import type { Amount } from "#runtime/money/money.ts";
import { usd, usdPrice } from "#runtime/money/testing/dollars.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { openWorld, userItem, type WorldOptions } from "../test-orchestrator.ts";

const model = { $typeName: "toolbus.agent.v1.Model" as const, provider: "scripted", model: "echo", contextWindow: 0 };
const price = create(PriceSchema, usdPrice(0, 0));
const inEuro = { ...price, currencyCode: "EUR" };

/** How a run ends with these settings of its agent, and this max_cost of its own. */
async function ending(setting: Omit<WorldOptions, "router">, maxCost?: Amount) {
  await using world = await openWorld({ router: createFakeRouter([]), ...setting });
  await world.writeScript("echo", { turns: [{ text: "You said {{input}}." }] });
  await world.openOrchestrator("one");
  const { run } = await world.runs.createRun({
    agent: "echo",
    input: [userItem("hi")],
    options: { limits: { ...(maxCost && { maxCost }) } },
  });
  const isOver = async () => {
    const { run: standing } = await world.runs.getRun({ runId: run!.id });
    return standing?.endTime && standing;
  };
  return await until(isOver, { what: "the end of the run", timeoutMs: 20_000 });
}

describe("max_cost", () => {
  test("LOOP-12 of an agent whose model has no price fails the run before the model is asked, and says what is missing", async () => {
    const ended = await ending({ limits: { maxCost: usd(2) } });
    expect(ended).toMatchObject({ state: RunState.FAILED, endReason: RunEndReason.PRICE_MISSING, turnCount: 0 });
    expect(ended.error).toBe(
      'max_cost is 2.00 USD, but the model "echo" of agent echo has no price: no cost would ever reach it',
    );
  });

  test("LOOP-12 of a run is refused when it is created, with what to do, also for the want of the fallback's price", async () => {
    await expect(ending({}, usd(0.5))).rejects.toMatchObject({
      code: Code.FailedPrecondition,
      rawMessage:
        'options.limits.max_cost is 0.50 USD, but the model "echo" of agent echo has no price: no cost would ever reach it; ' +
        "give it one in the agent's configuration (0 for what is free), or leave max_cost out",
    });
    const half = { model: { ...model, price }, fallbackModel: { ...model, model: "other" } };
    await expect(ending({ agent: half }, usd(0.5))).rejects.toThrow('the model "other" of agent echo has no price');
  });

  test("LOOP-12 with a price, of nothing too, is a limit like any other; without a limit no price is needed", async () => {
    expect(await ending({ agent: { model: { ...model, price } } }, usd(0.5))).toMatchObject({
      state: RunState.COMPLETED,
    });
    expect(await ending({})).toMatchObject({ state: RunState.COMPLETED });
  });

  test("LOOP-12 in another currency than the prices is refused when the run is created, with both codes and the place", async () => {
    await expect(ending({ agent: { model: { ...model, price: inEuro } } }, usd(0.5))).rejects.toMatchObject({
      code: Code.FailedPrecondition,
      rawMessage:
        "options.limits.max_cost is in USD, but model.price of agent echo is in EUR; " +
        "the prices and limits of an agent and of its runs are in one currency",
    });
  });

  test("LOOP-12 prices of one agent in two currencies fail its run before a model is asked", async () => {
    const agent = { model: { ...model, price }, fallbackModel: { ...model, model: "other", price: inEuro } };
    const ended = await ending({ agent });
    expect(ended).toMatchObject({ state: RunState.FAILED, endReason: RunEndReason.CURRENCY_MISMATCH, turnCount: 0 });
    expect(ended.error).toBe("fallbackModel.price is in EUR, but model.price of agent echo is in USD");
  });
});
