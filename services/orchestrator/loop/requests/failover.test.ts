import { APICallError } from "@ai-sdk/provider";
import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { type Model, ModelSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { usd, usdPrice } from "#runtime/money/testing/dollars.ts";
import { createFakeModel, type FakeModel } from "../../testing/fakes/fake-model.ts";
import { openRun } from "../../testing/loop-run.ts";
import { firstAttemptOfClaim } from "../turn/turn.ts";
import { createModelRow } from "./models.ts";

function apiError(statusCode: number, headers: Record<string, string> = {}): APICallError {
  return new APICallError({
    message: `status ${statusCode}`,
    url: "http://model",
    requestBodyValues: {},
    statusCode,
    responseHeaders: { "retry-after-ms": "1", ...headers },
  });
}

const config = (price = 0): Model =>
  create(ModelSchema, { provider: "fake", model: "m", price: usdPrice(price, price) });

const failing = (error: Error) =>
  createFakeModel("first", () => {
    throw error;
  });

const answering = () =>
  createFakeModel("second", (_, count) =>
    count === 1 ? { calls: [{ id: "1", name: "double", input: '{"value":2}' }] } : { text: "done" },
  );

async function openTwo(first: FakeModel, second: FakeModel, modelRetries = 1) {
  const failovers: string[] = [];
  const models = createModelRow({ language: first, config: config(1) }, { language: second, config: config(100) });
  const context = { models, onFailover: (_: unknown, modelId: string) => failovers.push(modelId) };
  return { ...(await openRun({ turns: [], limits: { modelRetries }, context })), failovers };
}

describe("a second model", () => {
  test("LOOP-11 takes the turn over when the first one keeps failing, and the turns after it", async () => {
    const [first, second] = [failing(apiError(503)), answering()];
    const run = await openTwo(first, second);
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "done" });
    expect(first.asked).toHaveLength(2);
    expect(second.asked).toHaveLength(2);
    expect(run.failovers).toEqual(["second"]);
    const committed = run.events().flatMap(({ event }) => (event.case === "turnCommitted" ? [event.value] : []));
    expect(committed).toMatchObject([
      { model: "second", attempt: 3 },
      { model: "second", attempt: 1 },
    ]);
    expect((await run.view()).usage?.cost).toMatchObject(usd((2 * 15 * 100) / 1_000_000));
  });

  test("LOOP-11 is asked at once for what no retry mends, and for a wait that is too long", async () => {
    for (const error of [apiError(401), apiError(429, { "retry-after-ms": "60000" })]) {
      const first = failing(error);
      const run = await openTwo(first, answering());
      await run.work();
      expect(first.asked).toHaveLength(1);
      expect(await run.view()).toMatchObject({ outputText: "done" });
    }
  });

  test("LOOP-11 takes over at once from a provider with an error in its program; alone, that ends the run and is told", async () => {
    const broken = new TypeError("Cannot read properties of undefined (reading 'id')");
    const first = failing(broken);
    const run = await openTwo(first, answering());
    await run.work();
    expect(first.asked).toHaveLength(1);
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "done" });

    const alone = failing(broken);
    const failed = await openRun({ turns: [], model: alone });
    await failed.work();
    const error = `the provider of model "first" is broken: TypeError: ${broken.message}`;
    expect(await failed.view()).toMatchObject({ state: RunState.FAILED, endReason: RunEndReason.MODEL_ERROR, error });
    expect(alone.asked).toHaveLength(1);
  });

  test("LOOP-11 that fails as well ends the run with its own words", async () => {
    const run = await openTwo(failing(apiError(503)), failing(apiError(500)));
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.FAILED,
      endReason: RunEndReason.MODEL_ERROR,
      error: "status 500 (500 from http://model/)",
    });
  });

  test("LOOP-11 LOOP-10 starts over: nothing of the first one's words is in the log", async () => {
    const first = createFakeModel("first", () => ({
      parts: [
        { type: "text-delta", id: "t", delta: "half a sen" },
        { type: "error", error: apiError(500) },
      ],
    }));
    const run = await openTwo(first, answering(), 0);
    await run.work();
    expect(JSON.stringify((await run.view()).items.map(({ item }) => item.value?.$typeName))).not.toContain("half");
    expect(run.deltas.filter(({ delta }) => delta.case === "text").map(({ attempt }) => attempt)).toContain(1);
    expect(run.events().find(({ event }) => event.case === "turnCommitted")?.event.value).toMatchObject({ attempt: 2 });
  });

  test("LOOP-10 LOOP-11 attempts of a later claim are numbered after as many as an earlier one can have made", async () => {
    const error = apiError(503, { "retry-after-ms": "0" });
    const second = createFakeModel("second", (_, count) => {
      if (count % 101 !== 0) throw error;
      return count === 101 ? {} : { text: "at last" };
    });
    const run = await openTwo(failing(error), second, 100);
    await run.work();
    const committed = run.events().find(({ event }) => event.case === "turnCommitted")?.event.value;
    expect(committed).toMatchObject({ attempt: 303 });
    expect(firstAttemptOfClaim({ claimsInTurn: 2 })).toBeGreaterThan(303);
  });
});
