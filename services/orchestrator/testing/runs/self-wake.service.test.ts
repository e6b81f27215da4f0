import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { SessionWakeSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import { type Run, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { textOfContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { auditOf } from "../../../../test/harness/bus.ts";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { createFakeSpaces, inboxEvent, type TestEvent } from "../fakes/fake-spaces.ts";
import { follow, openWorld, userItem, type World } from "../test-orchestrator.ts";

const spaces = createFakeSpaces();
const gate = Promise.withResolvers<string>();
const router = createFakeRouter([{ name: "gate", answer: () => gate.promise }]);

let world: World;
beforeAll(async () => {
  world = await openWorld({ router, spaces, limits: { maxSelfWakes: 3 } });
  await world.openOrchestrator("one");
  await world.openOrchestrator("two");
  await world.writeScript("echo", { turns: [{ text: "I see {{input}}" }] });
  await world.writeScript("busy", { turns: [{ calls: [{ name: "gate" }] }, { text: "done" }] });
  await world.writeScript("asker", { turns: [{ calls: [{ name: "ask", id: "q" }] }, { text: "done" }] });
});
afterAll(() => world[Symbol.asyncDispose]());

async function wake(sessionId: string, inboxEventId: string): Promise<void> {
  const message = create(SessionWakeSchema, { sessionId, inboxEventId });
  await world.bus.jetstream.publish(`toolbus.wake.${sessionId}`, toBinary(SessionWakeSchema, message));
}

/** As spaces does it: stored, then told. */
async function deliver(event: Omit<TestEvent, "agent">): Promise<void> {
  spaces.waiting.push(inboxEvent({ ...event, agent: event.sessionId.split("-")[0]! }));
  await wake(event.sessionId, event.eventId);
}

const runsOf = async (sessionId: string) => (await world.runs.listRuns({ sessionId })).runs;

async function ended(sessionId: string, count: number): Promise<Run[]> {
  const isEnded = ({ state: status }: Run) => status === RunState.COMPLETED;
  await until(async () => (await runsOf(sessionId)).filter(isEnded).length >= count, { what: `${count} runs to end` });
  return runsOf(sessionId);
}

/** Everything that was woken for has been put down. */
async function quiet(): Promise<void> {
  const isQuiet = async () => {
    const { num_pending, num_ack_pending } = await world.bus.manager.consumers.info("TOOLBUS_WAKES", "orchestrator");
    return num_pending + num_ack_pending === 0;
  };
  await until(isQuiet, { what: "no wake-up to be left", timeoutMs: 15_000 });
}

describe("a session that is woken by its inbox", () => {
  test("TOOL-9 starts a run by itself, which takes what waits", async () => {
    await deliver({ sessionId: "echo-alone", eventId: "tr:a", text: "[Tool Result: slow] (callId: a) 1" });
    const [run] = await ended("echo-alone", 1);
    const { run: whole } = await world.runs.getRun({ runId: run!.id });
    expect(whole).toMatchObject({ outputText: "I see [Tool Result: slow] (callId: a) 1", selfWakeCount: 1 });
    expect(spaces.acknowledged).toContain("tr:a");
  });

  test("TOOL-9 LOOP-13 starts one run for an event, however often and wherever it is woken for it", async () => {
    spaces.waiting.push(inboxEvent({ sessionId: "echo-often", agent: "echo", eventId: "tr:o", text: "once" }));
    await Promise.all(Array.from({ length: 8 }, () => wake("echo-often", "tr:o")));
    await ended("echo-often", 1);
    await wake("echo-often", "tr:o");
    await quiet();
    expect(await runsOf("echo-often")).toHaveLength(1);
  });

  test("LOOP-1 TOOL-9 waits until the run that goes on has ended, and starts one then", async () => {
    const { run } = await world.runs.createRun({ sessionId: "busy-session", input: [userItem("go")] });
    await until(() => router.requests.some(({ runId }) => runId === run!.id), { what: "the call" });
    await deliver({ sessionId: "busy-session", eventId: "tr:b", text: "news" });
    expect(await runsOf("busy-session")).toHaveLength(1);
    gate.resolve("open");
    const [second, first] = await ended("busy-session", 2);
    expect(first).toMatchObject({ id: run!.id, selfWakeCount: 0 });
    expect(second).toMatchObject({ selfWakeCount: 1 });
  });

  test("LOOP-5 LOOP-16 a parked session starts nothing; what came meanwhile is taken up when the run has ended", async () => {
    const options = { functionTools: [{ name: "ask" }] };
    const { run } = await world.runs.createRun({ sessionId: "asker-session", input: [userItem("go")], options });
    const isParked = async () => (await world.runs.getRun({ runId: run!.id })).run?.state === RunState.REQUIRES_ACTION;
    await until(isParked, { what: "the run to park" });
    await deliver({ sessionId: "asker-session", eventId: "tr:p", text: "news" });
    await quiet();
    expect(await runsOf("asker-session")).toHaveLength(1);
    await world.runs.cancelRun({ runId: run!.id });
    await until(async () => (await runsOf("asker-session")).length === 2, { what: "the second run" });
  });

  test("TOOL-9 runs that start by themselves are counted, stop at the limit, and a person's words begin anew", async () => {
    const sessionId = "echo-counted";
    for (const [index, number] of ["1", "2", "3"].entries()) {
      await deliver({ sessionId, eventId: `tr:c${number}`, text: number });
      await ended(sessionId, index + 1);
    }
    await deliver({ sessionId, eventId: "tr:c4", text: "4" });
    await quiet();
    expect((await runsOf(sessionId)).map(({ selfWakeCount }) => selfWakeCount)).toEqual([3, 2, 1]);
    const refusals = async () =>
      (await auditOf(world.bus, AuditKind.BLOCKED)).filter((event) => event.sessionId === sessionId);
    await until(async () => (await refusals()).length > 0, { what: "the refusal in the audit trail" });
    expect((await refusals())[0]).toMatchObject({
      service: "orchestrator",
      agent: "echo",
      rule: "limits.maxSelfWakes",
    });
    await deliver({ sessionId, eventId: "msg:p", text: '[Ada: "hello"]', isFromPerson: true });
    const runs = await ended(sessionId, 4);
    expect(runs[0]).toMatchObject({ selfWakeCount: 1 });
    const events = await follow(world.runs, runs[0]!.id);
    const taken = events.flatMap((update) => (update.case === "event" ? [update.value.event] : []));
    expect(taken.find(({ case: kind }) => kind === "inboxTaken")?.value).toMatchObject({
      eventIds: ["tr:c4", "msg:p"],
    });
  });

  test("TOOL-9 a wake-up without anything in the inbox, or of a session that is gone, starts nothing", async () => {
    await wake("echo-nothing", "tr:none");
    await wake("missing-session", "tr:none");
    await quiet();
    expect(await runsOf("echo-nothing")).toEqual([]);
  });
});

test("TOOL-9 an agent that does not want to be woken by its inbox finds its news in the next run", async () => {
  await using own = await openWorld({ router, spaces, agent: { wakeOnInbox: false } });
  await own.openOrchestrator("one");
  await own.writeScript("shy", { turns: [{ text: "I see {{input}}" }] });
  spaces.waiting.push(inboxEvent({ sessionId: "shy-session", agent: "shy", eventId: "tr:s", text: "news" }));
  const message = create(SessionWakeSchema, { sessionId: "shy-session", inboxEventId: "tr:s" });
  await own.bus.jetstream.publish("toolbus.wake.shy-session", toBinary(SessionWakeSchema, message));
  const { run } = await own.runs.createRun({ sessionId: "shy-session", input: [userItem("hello")] });
  await follow(own.runs, run!.id);
  expect((await own.runs.listRuns({ sessionId: "shy-session" })).runs).toHaveLength(1);
  const { run: whole } = await own.runs.getRun({ runId: run!.id });
  expect(whole!.items.map(({ item }) => item.case === "message" && textOfContent(item.value.content))).toEqual([
    "news",
    "hello",
    "I see hello",
  ]);
});
