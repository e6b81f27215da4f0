import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { createJournal, type EventBody } from "./log/journal.ts";
import { createStreamRunLog } from "./subscriptions/streams/stream-run-log.ts";
import { openStreamWakes } from "./subscriptions/streams/stream-wakes.ts";
import { asking, openScriptedWorld, type ScriptedWorld } from "./testing/scripted-world.ts";
import { userItem } from "./testing/test-orchestrator.ts";

let world: ScriptedWorld;
beforeAll(async () => {
  world = await openScriptedWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

describe("a run", () => {
  test("LOOP-1 goes from the input over a call to the final answer", async () => {
    const run = await world.start({ agent: "doubler" }, "hello");
    const events = await world.eventsOf(run);
    expect(events.map(({ event }) => event.case)).toEqual([
      "accepted",
      "claimed",
      "turnCommitted",
      "callFinished",
      "turnCommitted",
      "ended",
    ]);
    expect(await world.becomes(run, RunState.COMPLETED)).toMatchObject({
      endReason: RunEndReason.FINAL_ANSWER,
      turnCount: 2,
      outputText: "It is 42.",
    });
  });

  test("LOOP-13 is created once for a key, however often and wherever it is asked for", async () => {
    const creation = { input: [userItem("once")], sessionId: "echo-keyed", idempotencyKey: "k" };
    const answers = await Promise.all(Array.from({ length: 8 }, () => world.runs.createRun(creation)));
    expect(new Set(answers.map(({ run }) => run!.id)).size).toBe(1);
    await world.eventsOf(answers[0]!.run!);
    expect((await world.runs.createRun(creation)).run).toMatchObject({
      id: answers[0]!.run!.id,
      state: RunState.COMPLETED,
    });
    expect((await world.runs.listRuns({ sessionId: "echo-keyed" })).runs).toHaveLength(1);
  });

  test("LOOP-13 is created once for a key without a session, in one session", async () => {
    const creation = { input: [userItem("once")], agent: "echo", idempotencyKey: "no session" };
    const answers = await Promise.all(Array.from({ length: 4 }, () => world.runs.createRun(creation)));
    expect(new Set(answers.map(({ run }) => `${run!.id} ${run!.sessionId}`)).size).toBe(1);
  });

  test("LOOP-1 waits for the one before it in its session, and continues its conversation", async () => {
    const first = await world.start({ sessionId: "waiter-queue" }, "queue");
    const second = await world.start({ sessionId: "waiter-queue" }, "second");
    world.gateOf("second").resolve("two");
    await until(() => world.router.executed.includes("gate"), { what: "the first run's call" });
    expect(await world.statusOf(second)).toBe(RunState.QUEUED);
    world.gateOf("queue").resolve("one");
    await world.eventsOf(second);
    expect(await world.becomes(first, RunState.COMPLETED)).toMatchObject({ outputText: "one it is" });
    expect(await world.becomes(second, RunState.COMPLETED)).toMatchObject({ outputText: "two it is" });
  });

  test("LOOP-1 LOOP-16 that is parked ends when its time is over, though nobody comes", async () => {
    const options = { ...asking, limits: { timeout: durationFromMs(1_500) } };
    const run = await world.start({ sessionId: "asker-deadline" }, "hi", { options });
    const events = await world.eventsOf(run);
    expect(events.map(({ event }) => event.case)).toEqual([
      "accepted",
      "claimed",
      "turnCommitted",
      "parked",
      "claimed",
      "ended",
    ]);
    expect(await world.becomes(run, RunState.INCOMPLETE)).toMatchObject({ endReason: RunEndReason.DEADLINE });
    const { state } = await world.bus.manager.streams.info("TOOLBUS_TIMERS");
    expect(state.messages).toBe(0);
  });

  test("LOOP-12 LOOP-16 that waits for its turn ends when its time is over, whatever the run before it does", async () => {
    const parked = await world.start({ sessionId: "asker-behind" }, "hi", { options: asking });
    const working = await world.start({ sessionId: "waiter-behind" }, "behind");
    await world.becomes(parked, RunState.REQUIRES_ACTION);
    await world.becomes(working, RunState.IN_PROGRESS);
    for (const before of [parked, working]) {
      const { sessionId } = before;
      const queued = await world.start({ sessionId }, "quick", {
        options: { limits: { timeout: durationFromMs(1_000) } },
      });
      expect(await world.becomes(queued, RunState.INCOMPLETE)).toMatchObject({
        endReason: RunEndReason.DEADLINE,
        turnCount: 0,
      });
      expect((await world.eventsOf(queued)).map(({ event }) => event.case)).toEqual(["accepted", "ended"]);
    }
    expect(await world.statusOf(parked)).toBe(RunState.REQUIRES_ACTION);
    expect(await world.statusOf(working)).toBe(RunState.IN_PROGRESS);
    world.gateOf("behind").resolve("done");
    await world.runs.cancelRun({ runId: parked.id });
    await world.becomes(working, RunState.COMPLETED);
  });

  test("LOOP-5 LOOP-16 parks until its outputs are there, and further input of the session waits", async () => {
    const run = await world.start({ sessionId: "asker-parked" }, "hi", { options: asking });
    const next = await world.start({ sessionId: "asker-parked" }, "hi again", { options: asking });
    const parked = await world.becomes(run, RunState.REQUIRES_ACTION);
    expect(parked.requiredCalls).toMatchObject([{ callId: "who", name: "ask" }]);
    expect(await world.statusOf(next)).toBe(RunState.QUEUED);
    await world.runs.submitOutputs({
      runId: run.id,
      outputs: [{ callId: "who", outcome: { case: "resultJson", value: '"Ada"' } }],
    });
    expect(await world.becomes(run, RunState.COMPLETED)).toMatchObject({ outputText: "Hello Ada" });
    await world.becomes(next, RunState.REQUIRES_ACTION);
    await world.runs.cancelRun({ runId: next.id });
  });

  test("LOOP-5 of two clients that answer the same call one wins", async () => {
    const run = await world.start({ agent: "asker" }, "hi", { options: asking });
    await world.becomes(run, RunState.REQUIRES_ACTION);
    const submit = (name: string) =>
      world.runs.submitOutputs({
        runId: run.id,
        outputs: [{ callId: "who", outcome: { case: "resultJson", value: `"${name}"` } }],
      });
    const outcomes = await Promise.allSettled(["Ada", "Bob", "Cleo"].map(submit));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect((await world.eventsOf(run)).filter(({ event }) => event.case === "callFinished")).toHaveLength(1);
  });

  test("LOOP-3 LOOP-2 options that name what no tool is called are refused before anything is stored", async () => {
    await expect(
      world.start({ agent: "echo" }, "x", { options: { allowedTools: { names: ["nothing"] } } }),
    ).rejects.toThrow('"nothing", which no tool');
    const forced = {
      toolChoice: { choice: { case: "forcedTool", value: "gate" } },
      allowedTools: { names: ["double"] },
    };
    await expect(world.start({ agent: "echo" }, "x", { options: forced })).rejects.toThrow(
      'forced tool "gate" is not allowed',
    );
    await expect(world.start({ sessionId: "missing" }, "x")).rejects.toThrow("there is no session missing");
    await expect(world.runs.getRun({ runId: "run_none" })).rejects.toThrow("there is no run run_none");
  });
});

describe("a creator that dies in between", () => {
  const accepted = (sessionId: string): EventBody => ({
    case: "accepted",
    value: { sessionId, agent: "echo", input: [userItem("alone")], principal: "local" },
  });

  test("LOOP-13 after the wake-up and before the append: the wake-up waits for its news", async () => {
    const wakes = await openStreamWakes(world.bus, { ackWaitMs: 1_000, heartbeatMs: 250, maxInHand: 1_000 });
    await wakes.send({ sessionId: "echo-early", runId: "run_early", eventCount: 1 });
    const journal = createJournal(createStreamRunLog(world.bus), "run_early", systemClock);
    const pending = async () =>
      (await world.bus.manager.consumers.info("TOOLBUS_WAKES", "orchestrator")).num_redelivered;
    await until(async () => (await pending()) > 0, { what: "the wake-up to be put back" });
    await journal.append(() => accepted("echo-early"));
    await until(async () => (await journal.refresh())?.phase.kind === "ended", { what: "the run to end" });
  });

  test("LOOP-13 after the append and before the queue: whoever is woken enqueues the run", async () => {
    const wakes = await openStreamWakes(world.bus, { ackWaitMs: 1_000, heartbeatMs: 250, maxInHand: 1_000 });
    const journal = createJournal(createStreamRunLog(world.bus), "run_unqueued", systemClock);
    await journal.append(() => accepted("echo-unqueued"));
    await wakes.send({ sessionId: "echo-unqueued", runId: "run_unqueued", eventCount: 1 });
    await until(async () => (await journal.refresh())?.phase.kind === "ended", { what: "the run to end" });
    expect((await world.runs.listRuns({ sessionId: "echo-unqueued" })).runs).toMatchObject([{ id: "run_unqueued" }]);
  });
});
