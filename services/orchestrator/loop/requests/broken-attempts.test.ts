import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { ModelSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { usd, usdPrice } from "#runtime/money/testing/dollars.ts";
import { SELF } from "#runtime/rpc/identity.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { cancelRun } from "../../runs/cancellation.ts";
import { createFakeModel } from "../../testing/fakes/fake-model.ts";
import { openRun, type Setting } from "../../testing/loop-run.ts";
import { createModelRow } from "./models.ts";

type Run = Awaited<ReturnType<typeof openRun>>;
type Said = (n: number) => LanguageModelV4StreamPart;

const config = { provider: "fake", model: "m", price: usdPrice(1, 1_000) };
const reset = Object.assign(new Error("reset"), { code: "ECONNRESET" });
const text: Said = () => ({ type: "text-delta", id: "t", delta: "word".repeat(1_024) });

interface Habits {
  says?: Said;
  breaksAfter?: number;
  pausesAfter?: number;
}

/** Says a part after the other, and then breaks off, or never ends, or falls silent. */
function createTalker({ says = text, breaksAfter, pausesAfter }: Habits) {
  const asked: LanguageModelV4CallOptions[] = [];
  const talker = { reads: 0 };
  const doStream: LanguageModelV4["doStream"] = async (call) => {
    asked.push(call);
    let n = 0;
    const pull = (sink: ReadableStreamDefaultController<LanguageModelV4StreamPart>) => {
      if (n === breaksAfter) return sink.error(reset);
      if (n === pausesAfter) return new Promise<void>(() => {});
      talker.reads += 1;
      sink.enqueue(says(n++));
    };
    return { stream: new ReadableStream({ pull }, { highWaterMark: 0 }) };
  };
  const doGenerate = () => Promise.reject(new Error("only streams"));
  return {
    asked,
    talker,
    specificationVersion: "v4" as const,
    provider: "fake",
    modelId: "m",
    supportedUrls: {},
    doGenerate,
    doStream,
  };
}

const open = (model: LanguageModelV4, more: Partial<Setting> = {}) =>
  openRun({ turns: [], model, agent: { model: config }, ...more });
const droppedOf = (run: Run) =>
  run.events().flatMap(({ event }) => (event.case === "answerDropped" ? [event.value] : []));
const keysOf = (asked: readonly LanguageModelV4CallOptions[]) =>
  asked.map(({ headers }) => headers?.["idempotency-key"]);

describe("a model that does not stop talking", () => {
  const delta = "x".repeat(16 * 1_024);
  test.each<[string, Said]>([
    ["text", () => ({ type: "text-delta", id: "t", delta })],
    ["thoughts", () => ({ type: "reasoning-delta", id: "r", delta })],
    ["texts of their own", (n) => ({ type: "text-delta", id: `t${n}`, delta })],
    [
      "arguments",
      (n) =>
        n === 0
          ? { type: "tool-input-start", id: "c", toolName: "double" }
          : { type: "tool-input-delta", id: "c", delta },
    ],
    ["calls", (n) => ({ type: "tool-call", toolCallId: `c${n}`, toolName: "double", input: delta })],
  ])("LOOP-11 LOOP-12 is cut as soon as no log takes its %s, which is counted", async (_, says) => {
    const model = createTalker({ says });
    const run = await open(model);
    await run.work();
    expect(await run.view()).toMatchObject({
      state: RunState.FAILED,
      endReason: RunEndReason.TURN_TOO_LARGE,
      error: expect.stringMatching(/the model's turn takes at least 10\d{5} bytes, over the limit of 1048576/),
    });
    expect(model.talker.reads).toBeLessThanOrEqual(2 ** 20 / delta.length + 2);
    expect(model.asked[0]?.abortSignal?.aborted).toBe(true);
    expect(model.asked).toHaveLength(1);
    expect(Number((await run.view()).usage?.outputTokens)).toBeGreaterThan(2 ** 18 - 1);
    const told = run.deltas.flatMap(({ delta: body }) => (typeof body.value === "string" ? [body.value] : []));
    expect(told.join("").length).toBeLessThanOrEqual(2 ** 20);
  });

  test("LOOP-12 a turn that no log takes for what surrounds it was paid for", async () => {
    const text = '"'.repeat(1_040_000);
    const parts: LanguageModelV4StreamPart[] = [
      { type: "text-delta", id: "t", delta: text, providerMetadata: { fake: { signature: "s".repeat(20_000) } } },
    ];
    const run = await open(createFakeModel("m", () => ({ parts })));
    await run.work();
    expect(await run.view()).toMatchObject({
      endReason: RunEndReason.TURN_TOO_LARGE,
      usage: { inputTokens: 10n, outputTokens: 5n },
    });
  });
});

describe("what an attempt used that broke off", () => {
  test("LOOP-12 counts: a run that has used up its tokens asks neither again nor another model", async () => {
    const first = createTalker({ breaksAfter: 8 });
    const second = createFakeModel("second", () => ({ text: "unasked" }));
    for (const modelRetries of [4, 0]) {
      first.asked.length = 0;
      const models = rowOf(first, second);
      const run = await open(first, { limits: { maxTokens: 100n, modelRetries }, context: { models } });
      await run.work();
      expect(await run.view()).toMatchObject({
        state: RunState.INCOMPLETE,
        endReason: RunEndReason.MAX_TOKENS,
        turnCount: 0,
      });
      expect(first.asked).toHaveLength(1);
      expect(second.asked).toHaveLength(0);
      expect(droppedOf(run)).toMatchObject([{ turn: 1, attempt: 1, model: "m", brokeOff: true }]);
      const { usage } = await run.view();
      expect(Number(usage?.outputTokens)).toBe(8 * 1_024);
      expect(Number(usage?.inputTokens)).toBeGreaterThan(10);
      expect(usage?.cost?.micros).toBeGreaterThan(usd(8).micros);
    }
  });

  test("LOOP-12 LOOP-13 is in the log before the model is asked again: a crash forgets none of it", async () => {
    const model = createTalker({ breaksAfter: 1 });
    const run = await open(model, { limits: { maxTokens: 2_000n, modelRetries: 10 }, context: { clock: hasty } });
    const { append } = run.log;
    run.log.append = async ({ event, ...claim }, position) => {
      if (model.asked.length === 2) throw new Error("killed");
      return append({ event, ...claim }, position);
    };
    await expect(run.work()).rejects.toThrow("killed");
    run.log.append = append;
    await run.work("heir");
    expect(await run.view()).toMatchObject({ state: RunState.INCOMPLETE, endReason: RunEndReason.MAX_TOKENS });
    expect(droppedOf(run).map(({ attempt }) => attempt)).toEqual([1, 1_025]);
  });

  test("LOOP-12 counts when the run's deadline cuts it", async () => {
    const run = await open(createTalker({ pausesAfter: 4 }), { limits: { timeout: durationFromMs(200) } });
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.INCOMPLETE, endReason: RunEndReason.DEADLINE });
    expect((await run.view()).usage?.outputTokens).toBe(4n * 1_024n);
  });

  test("LOOP-12 LOOP-15 counts when the run is canceled", async () => {
    const model = createTalker({ pausesAfter: 4 });
    const run = await open(model);
    const working = run.work();
    await until(() => model.talker.reads === 4);
    const notify = () => run.given.abort(new Error("canceled"));
    const { log, router, toolMessages } = run;
    const options = {
      log,
      router,
      toolMessages,
      clock: systemClock,
      wakes: { send: async () => {} },
      notify,
      onNotShown: () => {},
    };
    await cancelRun(options, "r", {
      caller: SELF,
      principal: "local",
      reason: "",
      signal: new AbortController().signal,
    });
    await working;
    expect(await run.view()).toMatchObject({ state: RunState.CANCELED });
    expect((await run.view()).usage?.outputTokens).toBe(4n * 1_024n);
  });

  test("LOOP-12 is nothing as long as the model has said nothing", async () => {
    const run = await open(createTalker({ breaksAfter: 0 }), {
      limits: { modelRetries: 1 },
      context: { clock: hasty },
    });
    await run.work();
    expect(await run.view()).toMatchObject({ endReason: RunEndReason.MODEL_ERROR });
    expect((await run.view()).usage?.inputTokens ?? 0n).toBe(0n);
  });
});

describe("the key of a request", () => {
  test("LOOP-11 LOOP-13 is the same when it is made again after a reset and after a crash", async () => {
    const model = createFakeModel("m", (_, n) => {
      if (n < 3) throw reset;
      return { text: "done" };
    });
    const run = await open(model, { context: { clock: hasty } });
    const { append } = run.log;
    run.log.append = async ({ event, ...claim }, position) => {
      if (event.event.case === "turnCommitted") throw new Error("killed");
      return append({ event, ...claim }, position);
    };
    await expect(run.work()).rejects.toThrow("killed");
    run.log.append = append;
    await run.work("heir");
    expect(keysOf(model.asked)).toEqual(["r-1-1", "r-1-1", "r-1-1", "r-1-1"]);
  });

  test("LOOP-11 LOOP-13 is another one after an answer of no use, also for the process that takes over, and for another model", async () => {
    const first = createFakeModel("first", (_, n) => {
      if (n === 1) return { text: "" };
      throw reset;
    });
    const second = createFakeModel("second", () => ({ text: "done" }));
    const models = rowOf(first, second);
    const run = await open(first, { limits: { modelRetries: 1 }, context: { models, clock: hasty } });
    const { append } = run.log;
    run.log.append = async ({ event, ...claim }, position) => {
      if (event.event.case === "turnCommitted") throw new Error("killed");
      return append({ event, ...claim }, position);
    };
    await expect(run.work()).rejects.toThrow("killed");
    run.log.append = append;
    await run.work("heir");
    expect(keysOf(first.asked)).toEqual(["r-1-1", "r-1-2", "r-1-2"]);
    expect(keysOf(second.asked)).toEqual(["r-1-2-2", "r-1-2-2"]);
  });
});

/** Waits for nothing. */
const hasty = { ...systemClock, delay: async () => {} };

function rowOf(...models: [LanguageModelV4, LanguageModelV4]) {
  const [first, second] = models.map((language) => ({ language, config: create(ModelSchema, config) }));
  return createModelRow(first!, second!);
}
