import { describe, expect, test } from "vitest";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { SELF } from "#runtime/rpc/identity.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import { cancelRun } from "../../runs/cancellation.ts";
import type { FakeTool } from "../../testing/fakes/fake-router.ts";
import { openRun } from "../../testing/loop-run.ts";

const effects: FakeTool[] = [
  { name: "read", tool: { effect: Effect.PURE }, answer: () => 1 },
  { name: "put", tool: { effect: Effect.IDEMPOTENT }, answer: () => 1 },
  { name: "pay", tool: { effect: Effect.AT_MOST_ONCE }, answer: () => 1 },
  { name: "unsaid", answer: () => 1 },
];
const calls = effects.map(({ name }) => ({ name }));
const turns = [{ calls }, { text: "done" }];

/** A router that fails each call in the same way, until a time that no patience reaches. */
async function runWithFailing(failure: Failure) {
  const clock = createManualClock();
  const run = await openRun({ turns, tools: effects, context: { clock } });
  run.router.callTool = async function* () {
    yield* [];
    setImmediate(() => clock.advance(31_000));
    throw failure;
  };
  return run;
}

const outcomes = async (run: Awaited<ReturnType<typeof openRun>>) =>
  (await run.results()).map(({ result }) => (JSON.parse(result?.outputJson ?? "null") as { error: string }).error);

describe("what a call does to the world", () => {
  test("LOOP-14 an attempt that may have begun is told as outcome_unknown for what changes something, and for nothing else", async () => {
    const run = await runWithFailing(new Failure("unavailable", "the router is gone", { reason: "OUTCOME_UNKNOWN" }));
    await run.work();
    expect(await outcomes(run)).toEqual([
      'tool "read" could not be called: the router is gone',
      'outcome_unknown: tool "put" may have been executed: the router is gone',
      expect.stringMatching(/^outcome_unknown: tool "pay" may have been executed/),
      expect.stringMatching(/^outcome_unknown: tool "unsaid" may have been executed/),
    ]);
    expect(await run.view()).toMatchObject({ state: RunState.COMPLETED });
  });

  test("LOOP-14 what was never sent, or was refused, is told as not called", async () => {
    for (const failure of [
      new Failure("unavailable", "nobody there", { reason: "CALL_NOT_STARTED" }),
      new Failure("failed_precondition", "not in this session", { reason: "TOOL_NOT_FOUND" }),
    ]) {
      const run = await runWithFailing(failure);
      await run.work();
      for (const outcome of await outcomes(run)) expect(outcome).toContain("could not be called");
    }
  });

  test("LOOP-14 after a takeover a call that cannot be asked for again is unknown, even if this attempt was never sent", async () => {
    const clock = createManualClock();
    const hang: FakeTool = { name: "pay", tool: { effect: Effect.AT_MOST_ONCE }, answer: () => new Promise(() => {}) };
    const run = await openRun({
      turns: [{ calls: [{ name: "pay" }] }, { text: "done" }],
      tools: [hang],
      context: { clock },
    });
    const dead = run.work("dead").catch((error: unknown) => error);
    await until(() => run.router.requests.length === 1, { what: "the call to begin" });
    run.router.callTool = async function* () {
      yield* [];
      setImmediate(() => clock.advance(31_000));
      throw new Failure("unavailable", "nobody there", { reason: "CALL_NOT_STARTED" });
    };
    await run.work("heir");
    expect((await outcomes(run))[0]).toMatch(/^outcome_unknown/);
    run.given.abort(new Error("over"));
    await dead;
  });

  test.each([
    ["allowed_tools", { allowedTools: { names: ["@bank/pay"] } }],
    ["a forced tool", { toolChoice: { choice: { case: "forcedTool" as const, value: "@bank/pay" } } }],
  ])(
    "LOOP-14 a takeover under %s asks for a call whose tool is listed no more, as it may have begun",
    async (_, options) => {
      const pay: FakeTool = { name: "pay", reference: "@bank/pay", answer: () => new Promise(() => {}) };
      const run = await openRun({ turns: [{ calls: [{ name: "pay" }] }, { text: "done" }], tools: [pay], options });
      const dead = run.work("dead").catch((error: unknown) => error);
      await until(() => run.router.requests.length === 1, { what: "the call to begin" });
      const { listTools } = run.router;
      run.router.listTools = async (...given) => ({ ...(await listTools(...given)), tools: [] });
      run.router.callTool = async function* () {
        yield* [];
        throw new Failure("not_found", "there is no tool pay", { reason: "TOOL_NOT_FOUND" });
      };
      await run.work("heir");
      expect((await outcomes(run))[0]).toMatch(/^outcome_unknown: tool "pay" may have been executed/);
      run.given.abort(new Error("over"));
      await dead;
    },
  );

  test("LOOP-14 a call that loses its router again and again is asked for anew each time, however long it has run", async () => {
    const clock = createManualClock();
    const run = await openRun({
      turns: [{ calls: [{ name: "pay" }] }, { text: "done" }],
      tools: effects,
      context: { clock },
    });
    const { callTool } = run.router;
    let attempts = 0;
    run.router.callTool = async function* (request, options) {
      attempts += 1;
      if (attempts > 2) return yield* callTool(request, options);
      await clock.advance(60_000);
      setImmediate(() => clock.advance(1_000));
      throw new Failure("unavailable", "the router is gone", { reason: "OUTCOME_UNKNOWN" });
    };
    await run.work();
    expect((await run.results()).map(({ result }) => result?.outputJson)).toEqual(["1"]);
  });

  test("LOOP-14 a call that takes down each router that has it is given up, also one that can be repeated", async () => {
    const manual = createManualClock();
    const clock = { ...manual, delay: (ms: number) => manual.advance(ms) };
    const run = await openRun({
      turns: [{ calls: [{ name: "read" }] }, { text: "done" }],
      tools: effects,
      context: { clock },
    });
    const { callTool } = run.router;
    let attempts = 0;
    run.router.callTool = async function* (request, options) {
      attempts += 1;
      if (attempts > 50) return yield* callTool(request, options);
      await clock.advance(12_000);
      throw new Failure("unavailable", "the router is gone", { reason: "OUTCOME_UNKNOWN" });
    };
    await run.work();
    expect(attempts).toBe(6);
    expect(await outcomes(run)).toEqual(['tool "read" could not be called: the router is gone']);
  });

  test.each([
    ["are stopped", 12_000, "INSTANCE_STOPPING" as const],
    ["are lost after a quarter of an hour each", 15 * 60_000, "OUTCOME_UNKNOWN" as const],
  ])("LOOP-14 a call that waits long is asked for again however many of its routers %s", async (_, heldMs, reason) => {
    const manual = createManualClock();
    const clock = { ...manual, delay: (ms: number) => manual.advance(ms) };
    const turns = [{ calls: [{ name: "pay" }] }, { text: "done" }];
    const run = await openRun({ turns, tools: effects, context: { clock } });
    const { callTool } = run.router;
    let attempts = 0;
    run.router.callTool = async function* (request, options) {
      attempts += 1;
      if (attempts > 20) return yield* callTool(request, options);
      await clock.advance(heldMs);
      throw new Failure("unavailable", "the router is gone", { reason });
    };
    await run.work();
    expect((await run.results()).map(({ result }) => result?.outputJson)).toEqual(["1"]);
  });

  test("LOOP-14 a repeated call carries the same id and says that it repeats; the router's own outcome_unknown reaches the model", async () => {
    let attempts = 0;
    const run = await openRun({
      turns: [{ calls: [{ name: "pay", id: "p" }] }, { text: "{{result.pay.error}}" }],
      tools: effects,
    });
    const { callTool } = run.router;
    run.router.callTool = async function* (request, options) {
      attempts += 1;
      if (attempts === 1) throw new Failure("unavailable", "lost in the middle", { reason: "OUTCOME_UNKNOWN" });
      expect(request).toMatchObject({ callId: "r_p", recovering: true });
      for await (const response of callTool(request, options)) {
        if (response.event.case === "result") {
          response.event.value.outputJson =
            '{"error":"outcome_unknown: the router that had started the call was lost"}';
          response.event.value.isError = true;
        }
        yield response;
      }
    };
    await run.work();
    expect(attempts).toBe(2);
    expect(await run.view()).toMatchObject({ outputText: expect.stringMatching(/^outcome_unknown/) });
  });
});

describe("canceling", () => {
  const hang: FakeTool = { name: "hang", answer: () => new Promise(() => {}) };
  const canceling = (run: Awaited<ReturnType<typeof openRun>>, notify = () => {}) =>
    cancelRun(
      {
        log: run.log,
        wakes: { send: async () => {} },
        clock: createManualClock(),
        router: run.router,
        notify,
        toolMessages: run.toolMessages,
        onNotShown: () => {},
      },
      "r",
      { caller: SELF, principal: "p", reason: "enough", signal: new AbortController().signal },
    );

  test("LOOP-15 the calls are buried before the end is written, those of the client are left alone", async () => {
    const run = await openRun({
      turns: [
        {
          calls: [
            { name: "hang", id: "h" },
            { name: "ask", id: "q" },
          ],
        },
      ],
      tools: [hang],
      options: { functionTools: [{ name: "ask" }] },
    });
    const working = run.work().catch((error: unknown) => error);
    await until(() => run.router.running === 1, { what: "the call to begin" });
    const lastEvents: (string | undefined)[] = [];
    const { cancelToolCall } = run.router;
    run.router.cancelToolCall = async (...args) => {
      lastEvents.push(run.events().at(-1)?.event.case);
      return cancelToolCall(...args);
    };
    await canceling(run, () => run.given.abort(new Error("canceled")));
    await working;
    expect(run.router.canceled).toEqual(["r_h"]);
    expect(lastEvents).toEqual(["cancelRequested"]);
    expect(run.events().at(-1)?.event).toMatchObject({ case: "ended", value: { state: RunState.CANCELED } });
    expect(run.router.aborted).toEqual(["r_h"]);
  });

  test("LOOP-15 a process that was frozen with a call in its hand cannot make it after the cancellation", async () => {
    const run = await openRun({ turns: [{ calls: [{ name: "pay", id: "p" }] }, { text: "never" }], tools: effects });
    const thawed = Promise.withResolvers<void>();
    const { callTool } = run.router;
    let isFrozen = false;
    run.router.callTool = async function* (request, options) {
      isFrozen = true;
      await thawed.promise;
      yield* callTool(request, options);
    };
    const frozen = run.work().catch((error: unknown) => error);
    await until(() => isFrozen, { what: "the process to be frozen before its call" });
    await canceling(run);
    const events = run.events().length;
    thawed.resolve();
    await frozen;
    expect(run.router.executed).toEqual([]);
    expect(run.events()).toHaveLength(events);
  });

  test("LOOP-15 without a router the end is left to whoever takes the run up, which buries the calls first", async () => {
    const run = await openRun({ turns: [{ calls: [{ name: "hang", id: "h" }] }], tools: [hang] });
    const working = run.work().catch((error: unknown) => error);
    await until(() => run.router.running === 1, { what: "the call to begin" });
    run.given.abort(new Error("killed"));
    await working;
    const { cancelToolCall } = run.router;
    run.router.cancelToolCall = () =>
      Promise.reject(new Failure("unavailable", "no router", { reason: "SERVICE_UNAVAILABLE" }));
    expect((await canceling(run)).phase.kind).toBe("working");
    let tries = 0;
    run.router.cancelToolCall = async (...args) => {
      tries += 1;
      if (tries < 3) throw new Failure("unavailable", "no router", { reason: "SERVICE_UNAVAILABLE" });
      return cancelToolCall(...args);
    };
    expect(await run.work("heir", { signal: new AbortController().signal })).toBe("ended");
    expect(run.router.canceled).toEqual(["r_h"]);
    expect(await run.view()).toMatchObject({ state: RunState.CANCELED, endReason: RunEndReason.CANCELED });
  });

  test("LOOP-15 a run that fails when it is taken up leaves none of its calls in flight", async () => {
    const run = await openRun({ turns: [{ calls: [{ name: "hang", id: "h" }] }], tools: [hang] });
    const working = run.work().catch((error: unknown) => error);
    await until(() => run.router.running === 1, { what: "the call to begin" });
    run.given.abort(new Error("killed"));
    await working;
    run.router.listTools = () =>
      Promise.reject(new Failure("not_found", "there is no agent helper", { reason: "AGENT_NOT_FOUND" }));
    expect(await run.work("heir", { signal: new AbortController().signal })).toBe("ended");
    expect(await run.view()).toMatchObject({ state: RunState.FAILED, endReason: RunEndReason.TOOLS_UNAVAILABLE });
    expect(run.router.canceled).toEqual(["r_h"]);
  });

  test("LOOP-5 LOOP-15 a parked run is canceled without anybody working on it, and takes no output any more", async () => {
    const run = await openRun({
      turns: [{ text: "Wait.", calls: [{ name: "ask", id: "q" }] }],
      options: { functionTools: [{ name: "ask" }] },
    });
    expect(await run.work()).toBe("parked");
    expect((await canceling(run)).phase.kind).toBe("ended");
    await expect(run.answer("q", "1")).rejects.toThrow("run r has ended");
    expect(await run.view()).toMatchObject({ state: RunState.CANCELED, outputText: "Wait.", requiredCalls: [] });
  });
});
