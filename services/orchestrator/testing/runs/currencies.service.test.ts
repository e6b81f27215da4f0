import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ModelSchema, SubAgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { usd, usdPrice } from "#runtime/money/testing/dollars.ts";
import { encodeRunContext } from "#runtime/rpc/run-context.ts";
import { clientFor } from "../../../clients.ts";
import { sessionOfCall } from "../../runs/sub-agents/called-session.ts";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { openWorld } from "../test-orchestrator.ts";

/** What a call of an agent of these prices says that has two dollars left, and how many runs it started. */
async function callHelper(price: ReturnType<typeof usdPrice> | undefined) {
  const model = create(ModelSchema, { provider: "scripted", model: "helper", ...(price && { price }) });
  const subAgents = [create(SubAgentSchema, { agent: "helper" })];
  await using world = await openWorld({ router: createFakeRouter([]), agent: { model, subAgents } });
  await world.writeScript("helper", { turns: [{ text: "done" }] });
  await world.openOrchestrator("one");
  const provider = clientFor(world.bus, ToolProviderService, { process: "orchestrator" });
  const request = {
    callId: "call",
    tool: "agent_helper",
    argumentsJson: '{"input":"go"}',
    scope: { sessionId: "boss-1", agent: "boss" },
    runContext: encodeRunContext({ bounds: { costLeft: usd(2) } }),
  };
  const events = await Array.fromAsync(provider.executeTool(request), ({ event }) => event);
  const { runs } = await world.runs.listRuns({ sessionId: sessionOfCall("call") });
  return { result: events.find(({ case: kind }) => kind === "result")?.value, runs: runs.length };
}

describe("the call of an agent inside a budget", () => {
  test("LOOP-12 LOOP-17 starts no run whose prices are in another currency, and says so with both codes", async () => {
    const { result, runs } = await callHelper({ ...usdPrice(1, 1), currencyCode: "EUR" });
    expect(result).toMatchObject({
      isError: true,
      outputJson: expect.stringContaining("max_cost is in USD, but model.price of agent helper is in EUR"),
    });
    expect(runs).toBe(0);
  });

  test("LOOP-12 LOOP-17 starts none whose model has no price", async () => {
    const { result, runs } = await callHelper(undefined);
    expect(result).toMatchObject({ isError: true, outputJson: expect.stringContaining("has no price") });
    expect(runs).toBe(0);
  });

  test("LOOP-12 LOOP-17 starts one whose prices are in the budget's currency, and its cost is told", async () => {
    const { result, runs } = await callHelper(usdPrice(1, 1));
    expect(result).toMatchObject({ isError: false, usage: { cost: { currencyCode: "USD" } } });
    expect(runs).toBe(1);
  });
});
