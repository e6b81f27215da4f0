import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { RunMode, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { ToolMessageState as Status } from "#gen/toolbus/space/v1/space_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { SELF } from "#runtime/rpc/identity.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { cancelRun } from "../../runs/cancellation.ts";
import type { FakeTool } from "../../testing/fakes/fake-router.ts";
import { openRun } from "../../testing/loop-run.ts";

const chart: FakeTool = { name: "chart", reference: "chart", tool: { visible: true }, answer: () => "drawn" };
const broken: FakeTool = {
  name: "chart",
  tool: { visible: true },
  answer: () => {
    throw new Error("is invalid");
  },
};
const hidden: FakeTool = { name: "chart", answer: () => "drawn" };

const usage = {
  inputTokens: { total: 1, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: undefined, reasoning: undefined },
};

type Writing = (count: number) => AsyncGenerator<LanguageModelV4StreamPart>;

/** A model that writes as the function says, each time it is asked. */
function modelThat(write: Writing): LanguageModelV4 {
  let count = 0;
  return {
    specificationVersion: "v4",
    provider: "fake",
    modelId: "writer",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("it only streams")),
    async doStream() {
      count += 1;
      return { stream: ReadableStream.from(write(count)) };
    },
  };
}

const begins = (id: string, delta = '{"ti'): LanguageModelV4StreamPart[] => [
  { type: "tool-input-start", id, toolName: "chart" },
  { type: "tool-input-delta", id, delta },
];
const calls = (id: string, input = '{"title":"x"}'): LanguageModelV4StreamPart[] => [
  { type: "tool-call", toolCallId: id, toolName: "chart", input },
  { type: "finish", finishReason: { unified: "tool-calls", raw: "" }, usage },
];
const says: LanguageModelV4StreamPart[] = [
  { type: "text-delta", id: "t", delta: "done" },
  { type: "finish", finishReason: { unified: "stop", raw: "" }, usage },
];

async function openWriting(write: (run: () => Opened, count: number) => ReturnType<Writing>, setting: Setting = {}) {
  const run: Opened = await openRun({
    turns: [],
    tools: [chart],
    ...setting,
    model: modelThat((count) => write(() => run, count)),
  });
  return run;
}

type Opened = Awaited<ReturnType<typeof openRun>>;
type Setting = Partial<Parameters<typeof openRun>[0]>;

const shownTimes = (run: Opened, times: number) =>
  until(() => run.toolMessages.told.length >= times, { timeoutMs: 10_000, what: `${times} messages` });

describe("a call of a visible tool", () => {
  test("TOOL-10 is shown while the model writes it, its arguments growing, under the id that the router goes on with", async () => {
    const run = await openWriting(async function* (opened, count) {
      if (count > 1) return yield* says;
      yield* begins("a");
      await shownTimes(opened(), 1);
      yield { type: "tool-input-delta", id: "a", delta: 'tle":' };
      await shownTimes(opened(), 2);
      yield* calls("a");
    });
    await run.work();
    const drafts = run.toolMessages.told.filter(({ result }) => result === undefined);
    expect(drafts).toMatchObject([
      { callId: "r_a", tool: "chart", runId: "r", argumentsJson: '{"ti', argumentsIncomplete: true },
      { callId: "r_a", tool: "chart", runId: "r", argumentsJson: '{"title":', argumentsIncomplete: true },
    ]);
    expect(run.router.requests.map(({ callId }) => callId)).toEqual(["r_a"]);
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED, outputText: "done" });
  });

  test("TOOL-10 is shown as far as 16,384 characters of its arguments, also where they come at once", async () => {
    const run = await openWriting(async function* (opened, count) {
      if (count > 1) return yield* says;
      yield* begins("a", `"${"x".repeat(100_000)}`);
      await shownTimes(opened(), 1);
      yield* calls("a");
    });
    await run.work();
    expect(run.toolMessages.told[0]?.argumentsJson).toHaveLength(16_384);
  });

  test("TOOL-10 that an attempt gave up is an error before the next one is committed, whose calls have other ids", async () => {
    const run = await openWriting(async function* (opened, count) {
      if (count > 2) return yield* says;
      yield* begins("a");
      await shownTimes(opened(), count === 1 ? 1 : 3);
      if (count === 1) throw Object.assign(new Error("reset"), { code: "ECONNRESET" });
      yield* calls("a");
    });
    await run.work();
    expect(run.events().flatMap(({ event }) => (event.case === "callShown" ? [event.value.callId] : []))).toEqual([
      "a",
      "a_2",
    ]);
    expect(run.toolMessages.statuses()).toMatchObject({ r_a: Status.ERROR });
    expect(run.router.requests.map(({ callId }) => callId)).toEqual(["r_a_2"]);
    const error = run.toolMessages.told.find(({ result }) => result !== undefined);
    expect(error).toMatchObject({ callId: "r_a", result: { isError: true } });
    expect(error?.result?.outputJson).toMatch(/began its answer anew/);
  });

  test("TOOL-10 that is refused ends with the reason, before the result is in the log", async () => {
    const run = await openWriting(
      async function* (opened, count) {
        if (count > 1) return yield* says;
        yield* begins("a");
        await shownTimes(opened(), 1);
        yield* calls("a");
      },
      { tools: [broken] },
    );
    const { recordToolMessage } = run.toolMessages;
    run.toolMessages.recordToolMessage = async (...args) => {
      if (args[0].message?.result) expect(run.events().at(-1)?.event.case).toBe("turnCommitted");
      return recordToolMessage(...args);
    };
    await run.work();
    expect(run.toolMessages.told.at(-1)).toMatchObject({
      callId: "r_a",
      argumentsIncomplete: true,
      result: { isError: true },
    });
    expect(run.toolMessages.told.at(-1)?.result?.outputJson).toMatch(/is invalid/);
    expect(run.toolMessages.statuses()).toEqual({ r_a: Status.ERROR });
  });

  test("TOOL-10 LOOP-13 of a process that is gone is ended by the one that claims the run next", async () => {
    const run = await openWriting(async function* (opened, count) {
      if (count > 1) return yield* says;
      yield* begins("a");
      await shownTimes(opened(), 1);
      opened().handover.abort(new Error("it stops"));
      await new Promise(() => {}); // silent from then on
    });
    expect(await run.work()).toBe("handed_over");
    expect(run.toolMessages.statuses()).toEqual({ r_a: Status.RUNNING });
    expect(await run.work("heir", { handover: new AbortController().signal })).toBe("ended");
    expect(run.toolMessages.statuses()).toEqual({ r_a: Status.ERROR });
  });

  test("TOOL-10 ends with a run that fails", async () => {
    const run = await openWriting(
      async function* (opened) {
        yield* begins("a");
        await shownTimes(opened(), 1);
        throw new Error("broken");
      },
      { limits: { modelRetries: 0 } },
    );
    await run.work();
    expect(await run.view()).toMatchObject({ state: RunState.FAILED });
    expect(run.toolMessages.statuses()).toEqual({ r_a: Status.ERROR });
  });
});

describe("nothing is shown, and nobody is asked,", () => {
  async function* oneCall(_: unknown, count: number) {
    yield* count > 1 ? says : [...begins("a", '{"title":"x"}'), ...calls("a")];
  }

  test("TOOL-10 for tools that are not visible", async () => {
    const run = await openWriting(oneCall, { tools: [hidden] });
    await run.work();
    expect(run.toolMessages).toMatchObject({ asked: [], told: [] });
    expect(run.events().map(({ event }) => event.case)).not.toContain("callShown");
  });

  test("TOOL-10 for a run of a single turn, whose calls are never made", async () => {
    const run = await openWriting(oneCall, { options: { mode: RunMode.SINGLE_TURN } });
    await run.work();
    expect(run.toolMessages).toMatchObject({ asked: [], told: [] });
  });

  test("TOOL-10 without an active space, which is asked for once an attempt", async () => {
    const run = await openWriting(async function* (opened, count) {
      if (count > 1) return yield* says;
      yield* begins("a");
      await until(() => opened().toolMessages.asked.length > 0, { what: "the question for a space" });
      yield* begins("a", "t");
      yield* calls("a");
    });
    run.toolMessages.space = "";
    await run.work();
    expect(run.toolMessages).toMatchObject({ asked: ["s"], told: [] });
  });

  test("TOOL-10 while spaces are away: that is told once, and the run goes on", async () => {
    const run = await openWriting(async function* (opened, count) {
      if (count > 1) return yield* says;
      yield* begins("a");
      await until(() => opened().toolMessages.faults.length > 0, { what: "the fault" });
      yield* begins("a", "t");
      yield* begins("b", "t");
      yield* calls("a");
    });
    run.toolMessages.failure = new Error("away");
    await run.work();
    expect(run.toolMessages.faults).toHaveLength(1);
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED });
  });
});

describe("canceling", () => {
  test("TOOL-10 LOOP-15 ends what is shown before the end is written, and leaves both to a later process while spaces are away", async () => {
    const run = await openWriting(async function* (opened) {
      yield* begins("a");
      await shownTimes(opened(), 1);
      opened().given.abort(new Error("it is gone"));
    });
    await run.work().catch(() => {}); // its process is gone
    const cancel = () =>
      cancelRun(
        {
          log: run.log,
          wakes: { send: async () => {} },
          clock: systemClock,
          router: run.router,
          notify: () => {},
          toolMessages: run.toolMessages,
          onNotShown: () => {},
        },
        "r",
        { caller: SELF, principal: "p", reason: "enough", signal: new AbortController().signal },
      );
    run.toolMessages.failure = new Failure("unavailable", "away", { reason: "BUS_UNAVAILABLE" });
    expect((await cancel()).phase.kind).toBe("working");
    run.toolMessages.failure = undefined;
    expect((await cancel()).phase.kind).toBe("ended");
    expect(run.toolMessages.told.at(-1)).toMatchObject({
      state: Status.ERROR,
      result: { outputJson: '{"error":"enough"}' },
    });
  });
});
