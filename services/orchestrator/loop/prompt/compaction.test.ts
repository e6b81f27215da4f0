import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Item, ItemSchema, Role, RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openCalls } from "../../log/state/fold.ts";
import { createFakeModel, textOfPrompt } from "../../testing/fakes/fake-model.ts";
import type { FakeTool } from "../../testing/fakes/fake-router.ts";
import { openRun } from "../../testing/loop-run.ts";
import { runFromSteps, steps, userItem } from "../../testing/random-log.ts";
import { faultsOfPrompt } from "../../testing/valid-prompt.ts";
import { decideCompaction } from "./compaction.ts";
import { tokensOfItems, transcriptFromItems } from "./transcript.ts";

const contextWindow = 4_000;
const large: FakeTool = { name: "large", answer: (args) => `${(args as { n: number }).n} ${"x".repeat(2_000)}` };
const isSummary = (call: Parameters<typeof textOfPrompt>[0]) => textOfPrompt(call).includes("You summarise");

/** Calls the large tool in each turn but the last. */
function createCaller(turns: number) {
  let taken = 0;
  return createFakeModel("m", (call) => {
    if (isSummary(call)) return { text: `summary after ${taken} turns`, inputTokens: 100, outputTokens: 20 };
    taken += 1;
    if (taken > turns) return { text: "done" };
    return { calls: [{ id: `c${taken}`, name: "large", input: `{"n":${taken}}` }] };
  });
}

const openLong = (turns: number, more = {}) =>
  openRun({
    turns: [],
    tools: [large],
    model: createCaller(turns),
    agent: { model: { provider: "fake", model: "m", contextWindow } },
    limits: { maxTurns: 100 },
    ...more,
  });

const compactions = (run: Awaited<ReturnType<typeof openLong>>) =>
  run.events().flatMap(({ event }) => (event.case === "contextCompacted" ? [event.value] : []));

describe("a conversation that outgrows its model's window", () => {
  test("LOOP-1 is summarised as often as needed: no request is over the window, each is valid, and the input stays", async () => {
    const run = await openLong(30);
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "done", turnCount: 31 });
    expect(compactions(run).length).toBeGreaterThan(3);
    for (const call of run.asked) {
      expect(faultsOfPrompt(call.prompt)).toEqual([]);
      expect(textOfPrompt(call).length / 3.5).toBeLessThan(contextWindow);
    }
    const last = run.asked.at(-1)!;
    expect(textOfPrompt(last)).toContain("[Summary of the conversation so far]\\nsummary after");
    expect(textOfPrompt(last)).toContain('"go"');
    expect(await run.results()).toHaveLength(30); // the log forgets nothing
  });

  test("LOOP-12 what the summary used counts in the run's usage", async () => {
    const run = await openLong(8);
    await run.work();
    const summaries = BigInt(compactions(run).length);
    expect(summaries).toBeGreaterThan(0n);
    expect((await run.view()).usage?.inputTokens).toBe(9n * 10n + summaries * 100n);
  });

  test("LOOP-13 the summary is in the log: whoever takes the run up after it goes on from it", async () => {
    const run = await openLong(8);
    const { append } = run.log;
    run.log.append = async ({ event, ...claim }, position) => {
      const outcome = await append({ event, ...claim }, position);
      if (event.event.case === "contextCompacted") throw new Error("killed");
      return outcome;
    };
    await expect(run.work()).rejects.toThrow("killed");
    run.log.append = append;
    const before = run.asked.filter(isSummary).length;
    await run.work("heir");
    expect(run.asked.filter(isSummary).length - before).toBe(compactions(run).length - 1);
    const first = run.asked.slice(run.asked.findIndex(isSummary) + 1)[0]!;
    expect(textOfPrompt(first)).toContain("[Summary of the conversation so far]");
    expect(await run.view()).toMatchObject({ outputText: "done" });
  });

  test("LOOP-13 a process that dies while the summary is written leaves nothing of it", async () => {
    const run = await openLong(8);
    const { append } = run.log;
    run.log.append = async ({ event, ...claim }, position) => {
      if (event.event.case === "contextCompacted") throw new Error("killed");
      return append({ event, ...claim }, position);
    };
    await expect(run.work()).rejects.toThrow("killed");
    expect(compactions(run)).toEqual([]);
    run.log.append = append;
    await run.work("heir");
    expect(await run.view()).toMatchObject({ outputText: "done" });
  });

  test("LOOP-1 earlier runs are summarised before the first turn", async () => {
    const history = Array.from({ length: 20 }, (_, index) => userItem(`${index} ${"y".repeat(1_000)}`));
    const run = await openLong(0, { context: { history } });
    await run.work();
    expect(compactions(run)).toMatchObject([{ beforeSequence: 2 }]);
    expect(textOfPrompt(run.asked[1]!)).not.toContain("yyyy");
    expect(textOfPrompt(run.asked[1]!)).toContain('"go"');
  });

  test.each([8, 300])(
    "LOOP-1 so are many runs, whose words of %d bytes are together a multiple of a window that has become smaller",
    async (bytes) => {
      const history = Array.from({ length: 1_000 }, (_, n) => userItem(`${n} ${"x".repeat(bytes)}`));
      const run = await openLong(0, { context: { history } });
      await run.work();
      expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "done" });
      expect(run.asked.length).toBe(2);
      for (const call of run.asked) expect(textOfPrompt(call).length / 3.5).toBeLessThan(contextWindow);
      const [summary] = run.asked;
      expect(textOfPrompt(summary!), "the latest say what is going on").toContain("user: 999 ");
      expect(textOfPrompt(summary!)).toMatch(/\[The \d+ earliest are left out\]/);
    },
  );

  test("LOOP-1 what cannot get shorter is sent as it is, once", async () => {
    const text = "z".repeat(40_000);
    const input = [
      create(ItemSchema, { item: { case: "message", value: { role: Role.USER, content: textContent(text) } } }),
    ];
    const run = await openLong(0, { accepted: { input } });
    await run.work();
    expect(run.asked).toHaveLength(1);
    expect(compactions(run)).toEqual([]);
  });

  test("LOOP-12 without a window nothing is shortened", async () => {
    const run = await openLong(8, { agent: { model: { provider: "fake", model: "m" } } });
    await run.work();
    expect(compactions(run)).toEqual([]);
    expect(run.asked).toHaveLength(9);
  });

  test("LOOP-1 a model that gives no summary is asked again, then the run fails with what happened", async () => {
    const model = createFakeModel("m", (call) =>
      isSummary(call) ? { text: " " } : { calls: [{ id: "c", name: "large", input: '{"n":1}' }] },
    );
    const run = await openLong(0, { model, limits: { maxTurns: 100, modelRetries: 1 } });
    await run.work();
    expect(await run.view()).toMatchObject({ endReason: RunEndReason.MODEL_ERROR, error: "the model gave no summary" });
  });
});

test("LOOP-1 the border is always a commit with nothing open behind it, and moves forward only", () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 400 }), (runSteps, window) => {
      const { state, events } = runFromSteps(runSteps, [userItem("go")], []);
      if (openCalls(state).length > 0) return;
      const compaction = decideCompaction(state, [], window);
      if (compaction === undefined) return;
      const { beforeSequence } = compaction;
      const border = events[beforeSequence]?.event.event.case;
      expect([undefined, "turnCommitted"]).toContain(border);
      expect(state.turns.at(-1)?.sequence).toBeGreaterThanOrEqual(Math.min(beforeSequence, events.length - 1));
      expect(beforeSequence).toBeGreaterThan(state.compaction?.beforeSequence ?? 0);
    }),
    { numRuns: 500 },
  );
});

test("LOOP-1 what a summary is made from has room, long items being shortened and short ones whole", () => {
  const item = (length: number): Item => userItem("\u00e4".repeat(length));
  const items = [item(10), item(50_000), item(20), item(90_000)];
  const transcript = transcriptFromItems(items, 2_000);
  expect(Buffer.byteLength(transcript) / 3.5).toBeLessThan(2_000);
  expect(transcript).toContain(`user: ${"\u00e4".repeat(20)}\n`);
  expect(transcript).toContain("bytes left out");
  expect(tokensOfItems(items)).toBeGreaterThan(50_000);
});

test("LOOP-11 LOOP-12 a summary is asked for again under its key after a reset, under another one after none; both count", async () => {
  const caller = createCaller(10);
  const keys: unknown[] = [];
  const model = createFakeModel("m", async (call) => {
    if (!isSummary(call)) {
      const parts = await Array.fromAsync((await caller.doStream(call)).stream);
      return { parts: parts.filter(({ type }) => type !== "finish"), finishReason: "tool-calls" };
    }
    keys.push(call.headers?.["idempotency-key"]);
    if (keys.length === 2) return { text: " ", inputTokens: 100, outputTokens: 20 };
    if (keys.length > 2) return { text: "summary", inputTokens: 100, outputTokens: 20 };
    return {
      parts: [
        { type: "text-delta", id: "t", delta: "half a sum" },
        { type: "error", error: "overloaded" },
      ],
    };
  });
  const clock = { ...systemClock, delay: async () => {} };
  const run = await openLong(10, { model, limits: { maxTurns: 8, modelRetries: 4 }, context: { clock } });
  await run.work();
  expect(compactions(run).length).toBeGreaterThan(0);
  const dropped = run.events().flatMap(({ event }) => (event.case === "answerDropped" ? [event.value] : []));
  expect(dropped).toMatchObject([
    { attempt: 0, brokeOff: true },
    { attempt: 0, brokeOff: false, usage: { inputTokens: 100n, outputTokens: 20n } },
  ]);
  const turn = dropped[0]?.turn;
  expect(keys.slice(0, 3)).toEqual([1, 1, 2].map((asking) => `r-${turn}-summary-0-${asking}`));
});
