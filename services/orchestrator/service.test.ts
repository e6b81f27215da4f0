import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Run, type RunEvent, RunStatus, RunStatusSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter } from "./loop/fake-router.fixture.ts";
import { follow, openWorld, userItem, type World } from "./orchestrator.fixture.ts";
import { createJournal, type EventBody } from "./run/journal.ts";
import { createStreamRunLog } from "./subscriptions/stream-run-log.ts";
import { openStreamWakes } from "./subscriptions/stream-wakes.ts";

/** Calls of `gate` wait until the test lets them go. */
let gates = new Map<string, PromiseWithResolvers<unknown>>();

function gateOf(name: string): PromiseWithResolvers<unknown> {
  const gate = gates.get(name) ?? Promise.withResolvers<unknown>();
  gates.set(name, gate);
  return gate;
}

const router = createFakeRouter([
  { name: "double", answer: (args) => ({ value: (args as { value: number }).value * 2 }) },
  { name: "gate", answer: (args) => gateOf((args as { name: string }).name).promise },
]);

let world: World;
beforeAll(async () => {
  gates = new Map();
  world = await openWorld({ router });
  await world.openOrchestrator("one");
  await world.openOrchestrator("two");
  await world.writeScript("doubler", {
    turns: [
      { text: "I double.", calls: [{ name: "double", arguments: { value: 21 } }] },
      { text: "It is {{result.0.value}}." },
    ],
  });
  await world.writeScript("echo", { turns: [{ text: "You said {{input}}." }] });
  await world.writeScript("waiter", {
    turns: [{ calls: [{ name: "gate", arguments: { name: "{{input}}" } }] }, { text: "{{result.0}} it is" }],
  });
  await world.writeScript("asker", {
    turns: [{ text: "Who?", calls: [{ name: "ask", id: "who" }] }, { text: "Hello {{result.0}}" }],
  });
  await world.writeScript("teller", { turns: [{ text: "once upon a time there was a run", deltaDelayMs: 20 }] });
  await world.writeScript("silent", { turns: [{ text: "never", delayMs: 600_000 }] });
});
afterAll(() => world[Symbol.asyncDispose]());

const asking = { functionTools: [{ name: "ask" }] };

async function start(sessionOrAgent: { sessionId?: string; agent?: string }, text: string, more = {}): Promise<Run> {
  const { run } = await world.runs.createRun({ ...sessionOrAgent, input: [userItem(text)], ...more });
  return run!;
}

async function statusOf({ id }: Run): Promise<RunStatus> {
  return (await world.runs.getRun({ runId: id })).run!.status;
}

async function becomes(run: Run, status: RunStatus): Promise<Run> {
  await until(async () => (await statusOf(run)) === status, { what: `status ${RunStatusSchema.value[status]?.name}` });
  return (await world.runs.getRun({ runId: run.id })).run!;
}

async function eventsOf({ id }: Run, fromSequence = 0): Promise<RunEvent[]> {
  const updates = await follow(world.runs, id, { fromSequence });
  return updates.flatMap((update) => (update.case === "event" ? [update.value] : []));
}

describe("a run", () => {
  test("LOOP-1 goes from the input over a call to the final answer", async () => {
    const run = await start({ agent: "doubler" }, "hello");
    const events = await eventsOf(run);
    expect(events.map(({ event }) => event.case)).toEqual([
      "accepted",
      "claimed",
      "turnCommitted",
      "callFinished",
      "turnCommitted",
      "ended",
    ]);
    expect(await becomes(run, RunStatus.COMPLETED)).toMatchObject({
      reason: "final_answer",
      turns: 2,
      outputText: "It is 42.",
    });
  });

  test("LOOP-13 is created once for a key, however often and wherever it is asked for", async () => {
    const creation = { input: [userItem("once")], sessionId: "echo-keyed", idempotencyKey: "k" };
    const answers = await Promise.all(Array.from({ length: 8 }, () => world.runs.createRun(creation)));
    expect(new Set(answers.map(({ run }) => run!.id)).size).toBe(1);
    await eventsOf(answers[0]!.run!);
    expect((await world.runs.createRun(creation)).run).toMatchObject({
      id: answers[0]!.run!.id,
      status: RunStatus.COMPLETED,
    });
    expect((await world.runs.listRuns({ sessionId: "echo-keyed" })).runs).toHaveLength(1);
  });

  test("LOOP-13 is created once for a key without a session, in one session", async () => {
    const creation = { input: [userItem("once")], agent: "echo", idempotencyKey: "no session" };
    const answers = await Promise.all(Array.from({ length: 4 }, () => world.runs.createRun(creation)));
    expect(new Set(answers.map(({ run }) => `${run!.id} ${run!.sessionId}`)).size).toBe(1);
  });

  test("LOOP-1 waits for the one before it in its session, and continues its conversation", async () => {
    const first = await start({ sessionId: "waiter-queue" }, "queue");
    const second = await start({ sessionId: "waiter-queue" }, "second");
    gateOf("second").resolve("two");
    await until(() => router.executed.includes("gate"), { what: "the first run's call" });
    expect(await statusOf(second)).toBe(RunStatus.QUEUED);
    gateOf("queue").resolve("one");
    await eventsOf(second);
    expect(await becomes(first, RunStatus.COMPLETED)).toMatchObject({ outputText: "one it is" });
    expect(await becomes(second, RunStatus.COMPLETED)).toMatchObject({ outputText: "two it is" });
  });

  test("LOOP-1 LOOP-16 that is parked ends when its time is over, though nobody comes", async () => {
    const options = { ...asking, limits: { deadlineMs: 1_500 } };
    const run = await start({ sessionId: "asker-deadline" }, "hi", { options });
    const events = await eventsOf(run);
    expect(events.map(({ event }) => event.case)).toEqual([
      "accepted",
      "claimed",
      "turnCommitted",
      "parked",
      "claimed",
      "ended",
    ]);
    expect(await becomes(run, RunStatus.INCOMPLETE)).toMatchObject({ reason: "deadline" });
    const { state } = await world.bus.manager.streams.info("TOOLBUS_TIMERS");
    expect(state.messages).toBe(0);
  });

  test("LOOP-5 LOOP-16 parks until its outputs are there, and further input of the session waits", async () => {
    const run = await start({ sessionId: "asker-parked" }, "hi", { options: asking });
    const next = await start({ sessionId: "asker-parked" }, "hi again", { options: asking });
    const parked = await becomes(run, RunStatus.REQUIRES_ACTION);
    expect(parked.requiredCalls).toMatchObject([{ callId: "who", name: "ask" }]);
    expect(await statusOf(next)).toBe(RunStatus.QUEUED);
    await world.runs.submitOutputs({ runId: run.id, outputs: [{ callId: "who", result: { outputJson: '"Ada"' } }] });
    expect(await becomes(run, RunStatus.COMPLETED)).toMatchObject({ outputText: "Hello Ada" });
    await becomes(next, RunStatus.REQUIRES_ACTION);
    await world.runs.cancelRun({ runId: next.id });
  });

  test("LOOP-5 of two clients that answer the same call one wins", async () => {
    const run = await start({ agent: "asker" }, "hi", { options: asking });
    await becomes(run, RunStatus.REQUIRES_ACTION);
    const submit = (name: string) =>
      world.runs.submitOutputs({ runId: run.id, outputs: [{ callId: "who", result: { outputJson: `"${name}"` } }] });
    const outcomes = await Promise.allSettled(["Ada", "Bob", "Cleo"].map(submit));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect((await eventsOf(run)).filter(({ event }) => event.case === "callFinished")).toHaveLength(1);
  });

  test("LOOP-3 LOOP-2 options that name what no tool is called are refused before anything is stored", async () => {
    await expect(start({ agent: "echo" }, "x", { options: { allowedTools: ["nothing"] } })).rejects.toThrow(
      '"nothing", which no tool',
    );
    const forced = { toolChoice: { choice: { case: "forcedTool", value: "gate" } }, allowedTools: ["double"] };
    await expect(start({ agent: "echo" }, "x", { options: forced })).rejects.toThrow(
      'forced tool "gate" is not allowed',
    );
    await expect(start({ sessionId: "missing" }, "x")).rejects.toThrow("there is no session missing");
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

describe("cancelling", () => {
  test("LOOP-15 reaches the model's request and the call in flight, and nothing follows it", async () => {
    const silent = await start({ agent: "silent" }, "x");
    const waiting = await start({ agent: "waiter" }, "cancelled");
    await until(() => router.requests.some(({ runId }) => runId === waiting.id), { what: "the call to be dispatched" });
    for (const run of [silent, waiting]) {
      const { run: cancelled } = await world.runs.cancelRun({ runId: run.id, reason: "enough" });
      expect(cancelled).toMatchObject({ status: RunStatus.CANCELLED, reason: "cancelled" });
    }
    await until(() => router.aborted.some((callId) => callId.startsWith(waiting.id)), { what: "the call's abort" });
    gateOf("cancelled").resolve("too late");
    const events = await eventsOf(waiting);
    expect(events.slice(-2)).toMatchObject([
      { event: { case: "cancelRequested", value: { reason: "enough" } } },
      { event: { case: "ended" } },
    ]);
    await expect(world.runs.cancelRun({ runId: waiting.id })).resolves.toMatchObject({
      run: { status: RunStatus.CANCELLED },
    });
  });

  test("LOOP-15 a run that waits in its queue is cancelled there, and the next one gets its turn", async () => {
    const [first, second, third] = await Promise.all(
      ["a", "b", "c"].map(async (name) => start({ sessionId: `asker-${name}` }, name, { options: asking })),
    ).then(async ([head]) => [
      head!,
      await start({ sessionId: "asker-a" }, "second", { options: asking }),
      await start({ sessionId: "asker-a" }, "third", { options: asking }),
    ]);
    await becomes(first!, RunStatus.REQUIRES_ACTION);
    await world.runs.cancelRun({ runId: second!.id });
    await world.runs.cancelRun({ runId: first!.id });
    await becomes(third!, RunStatus.REQUIRES_ACTION);
    expect(await becomes(second!, RunStatus.CANCELLED)).toMatchObject({ turns: 0 });
  });
});

describe("what is too large for a log", () => {
  const tooLarge = "bytes, over the limit of 1032192";

  test("LOOP-13 is refused at once when it is a run's input, and the session goes on", async () => {
    const startedAtMs = performance.now();
    await expect(start({ sessionId: "echo-large" }, "x".repeat(1_100_000))).rejects.toThrow(
      new RegExp(`invalid_argument.*the run's input with its options takes 11\\d{5} ${tooLarge}`),
    );
    expect(performance.now() - startedAtMs).toBeLessThan(5_000);
    const run = await start({ sessionId: "echo-large" }, "y".repeat(500_000));
    await becomes(run, RunStatus.COMPLETED);
  });

  test("fails the run when it is a turn", async () => {
    await world.writeScript("shouter", { turns: [{ text: "x".repeat(1_100_000) }] });
    const run = await start({ agent: "shouter" }, "x");
    const failed = await becomes(run, RunStatus.FAILED);
    expect(failed).toMatchObject({ reason: "turn_too_large", error: expect.stringContaining(tooLarge) });
  });

  test("is refused when it is a client's output, which may be given again", async () => {
    const run = await start({ agent: "asker" }, "hi", { options: asking });
    await becomes(run, RunStatus.REQUIRES_ACTION);
    const submit = (name: string) =>
      world.runs.submitOutputs({ runId: run.id, outputs: [{ callId: "who", result: { outputJson: `"${name}"` } }] });
    await expect(submit("x".repeat(1_100_000))).rejects.toThrow(tooLarge);
    await submit("Ada");
    await becomes(run, RunStatus.COMPLETED);
  });
});

describe("watching", () => {
  test("LOOP-10 starts at any sequence, shows each event once, and ends after the terminal one", async () => {
    const run = await start({ agent: "doubler" }, "x");
    const all = await eventsOf(run);
    expect(all.map(({ sequence }) => sequence)).toEqual([0, 1, 2, 3, 4, 5]);
    expect((await eventsOf(run, 3)).map(({ sequence }) => sequence)).toEqual([3, 4, 5]);
    expect(await eventsOf(run, 6)).toEqual([]);
  });

  test("LOOP-10 who joins in mid-turn gets the text so far, and everybody ends up with the text that is stored", async () => {
    const run = await start({ agent: "teller" }, "x");
    const texts = await Promise.all(
      [0, 1, 2, 3].map(async (number) => {
        let text = "";
        let seen = 0;
        await until(async () => number === 0 || (await statusOf(run)) !== RunStatus.QUEUED);
        for await (const { update } of world.runs.watchRun({ runId: run.id, includeDeltas: true })) {
          if (update.case === "reset") text = update.value.text;
          if (update.case === "delta" && update.value.delta.case === "text") text += update.value.delta.value;
          if (update.case === "delta" || update.case === "reset") seen += 1;
        }
        return { text, seen };
      }),
    );
    for (const { text } of texts) expect(text).toBe("once upon a time there was a run");
    expect(texts[0]!.seen).toBeGreaterThan(1);
  });
});

describe("listing", () => {
  test("gives runs latest first, by session, by status, in pages", async () => {
    const runs = [];
    for (const text of ["1", "2", "3"]) {
      const run = await start({ sessionId: "echo-list" }, text);
      await eventsOf(run);
      runs.push(run.id);
    }
    const first = await world.runs.listRuns({ sessionId: "echo-list", pageSize: 2 });
    expect(first.runs.map(({ id }) => id)).toEqual([runs[2], runs[1]]);
    const second = await world.runs.listRuns({ sessionId: "echo-list", pageSize: 2, pageToken: first.nextPageToken });
    expect(second.runs.map(({ id }) => id)).toEqual([runs[0]]);
    expect((await world.runs.listRuns({ sessionId: "echo-list", statuses: [RunStatus.FAILED] })).runs).toEqual([]);
    const all = (await world.runs.listRuns({})).runs.map(({ id }) => id);
    expect(all.indexOf(runs[2]!)).toBeLessThan(all.indexOf(runs[0]!));
    const inPages: string[] = [];
    for (let pageToken: string | undefined; pageToken !== ""; ) {
      const page = await world.runs.listRuns({ pageSize: 2, ...(pageToken !== undefined && { pageToken }) });
      inPages.push(...page.runs.map(({ id }) => id));
      pageToken = page.nextPageToken;
    }
    expect(inPages).toEqual(all);
    const wrong = world.runs.listRuns({ pageToken: runs[0]! });
    await expect(wrong).rejects.toMatchObject({ code: Code.InvalidArgument });
  });
});
