import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StoredRunEventSchema } from "#gen/toolbus/internal/run/v1/run_log_pb.ts";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type Run, RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import { runSubjects } from "../../subscriptions/run-subjects.ts";
import { asking, openScriptedWorld, type ScriptedWorld } from "../scripted-world.ts";

let world: ScriptedWorld;
beforeAll(async () => {
  world = await openScriptedWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const garbage = new TextEncoder().encode("\u00ff no record of anybody's");

/** An event of a kind that this release does not know, in a record that has more than it knows. */
function newerRecord(runId: string, sequence: number): Uint8Array {
  const event = new BinaryWriter()
    .raw(toBinary(RunEventSchema, create(RunEventSchema, { runId, sequence })))
    .tag(1_000, WireType.LengthDelimited)
    .string("what only a newer release knows");
  return new BinaryWriter()
    .tag(1, WireType.LengthDelimited)
    .bytes(event.finish())
    .tag(1_000, WireType.LengthDelimited)
    .string("of the record")
    .finish();
}

const recordsOf = async ({ id }: Run) =>
  (await Array.fromAsync(readSubject(world.bus, runSubjects.log(id)))).map(({ data }) => data);

describe("a run's log", () => {
  test("LOOP-10 with an event of a newer release, and with a record that nobody can read, is worked on and watched to its end", async () => {
    const run = await world.start({ agent: "waiter" }, "newer");
    const isCalled = () => world.router.requests.some(({ runId }) => runId === run.id);
    await expect.poll(isCalled, { timeout: 10_000 }).toBe(true);
    const watching = world.eventsOf(run);
    const standing = (await recordsOf(run)).length;
    await world.bus.jetstream.publish(runSubjects.log(run.id), garbage);
    await world.bus.jetstream.publish(runSubjects.log(run.id), newerRecord(run.id, standing));
    await world.bus.jetstream.publish(runSubjects.log(run.id), garbage);
    world.gateOf("newer").resolve("done");
    const events = await watching;
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
    expect(events[standing]?.event.case, "it has its place").toBeUndefined();
    expect(events.at(-1)?.event).toMatchObject({ case: "ended", value: { state: RunState.COMPLETED } });
    expect(await world.eventsOf(run), "and reads so ever after").toEqual(events);
    expect(await world.becomes(run, RunState.COMPLETED)).toMatchObject({ outputText: "done it is" });
    const { runs } = await world.runs.listRuns({ sessionId: run.sessionId });
    expect(runs.map(({ id }) => id)).toEqual([run.id]);
  });

  test("LOOP-13 has the claim of each event beside it, and watchers are told nothing of claims", async () => {
    const live: Uint8Array[] = [];
    const subscription = world.bus.connection.subscribe(runSubjects.live("*"), {
      callback: (_error, message) => void live.push(message.data.slice()),
    });
    const run = await world.start({ agent: "echo" }, "hello");
    const events = await world.eventsOf(run);
    const records = (await recordsOf(run)).map((data) => fromBinary(StoredRunEventSchema, data));
    expect(records.map(({ event }) => event)).toEqual(events);
    expect(records.map(({ event, epoch }) => `${event?.event.case} ${epoch}`)).toEqual([
      "accepted 0",
      "claimed 1",
      "turnCommitted 1",
      "ended 1",
    ]);
    expect(records.map(({ instance }) => instance !== "")).toEqual([false, true, false, false]);
    const toldOf = () =>
      live
        .map((data) => fromBinary(WatchRunResponseSchema, data).update)
        .flatMap((update) => (update.case === "event" && update.value.runId === run.id ? [update.value] : []));
    await expect.poll(() => toldOf().length).toBe(events.length);
    expect(toldOf()).toEqual(events);
    subscription.unsubscribe();
  });
});

test("LOOP-13 a session's queue and the queues of wake-ups with records that nobody can read go on behind them", async () => {
  const { jetstream } = world.bus;
  const first = await world.start({ agent: "echo" }, "one");
  await world.becomes(first, RunState.COMPLETED);
  const { sessionId } = first;
  for (const subject of [runSubjects.queue(sessionId), `toolbus.wake.${sessionId}`, runSubjects.timerDue(sessionId)])
    for (const data of [garbage, new Uint8Array()]) await jetstream.publish(subject, data);
  const second = await world.start({ sessionId }, "two");
  expect(await world.becomes(second, RunState.COMPLETED)).toMatchObject({ outputText: "You said two." });
  const { runs } = await world.runs.listRuns({ sessionId });
  expect(runs.map(({ id }) => id)).toEqual([second.id, first.id]);
  const all = await world.runs.listRuns({});
  expect(all.runs.map(({ id }) => id).slice(0, 2)).toEqual([second.id, first.id]);
  const waiting = async (stream: string) => (await world.bus.manager.streams.info(stream)).state.messages;
  await expect.poll(() => waiting("TOOLBUS_WAKES"), { timeout: 10_000 }).toBe(0);
  await expect.poll(() => waiting("TOOLBUS_TIMERS"), { timeout: 10_000 }).toBe(0);
});

test("LOOP-13 a log that has lost an event stops no later run of its session, and hides no other run", async () => {
  const first = await world.start({ agent: "echo" }, "one");
  await world.becomes(first, RunState.COMPLETED);
  const { sessionId } = first;
  const records = await Array.fromAsync(readSubject(world.bus, runSubjects.log(first.id)));
  await world.bus.manager.streams.deleteMessage("TOOLBUS_RUNS", records[1]?.sequence ?? 0);
  const second = await world.start({ sessionId }, "two");
  expect(await world.becomes(second, RunState.COMPLETED)).toMatchObject({ outputText: "You said two." });
  const third = await world.start({ sessionId }, "three", { previousRunId: second.id });
  expect(await world.becomes(third, RunState.COMPLETED)).toMatchObject({ outputText: "You said three." });
  const { runs } = await world.runs.listRuns({ sessionId });
  expect(runs.map(({ id }) => id)).toEqual([third.id, second.id]);
  await expect(world.runs.getRun({ runId: first.id })).rejects.toMatchObject({ code: Code.DataLoss });
});

test("LOOP-10 who waits for a run whose log has lost an event is told its end, once", async () => {
  const first = await world.start({ agent: "asker" }, "one", { options: asking });
  await world.becomes(first, RunState.REQUIRES_ACTION);
  const subject = runSubjects.log(first.id);
  const records = await Array.fromAsync(readSubject(world.bus, subject));
  await world.bus.manager.streams.deleteMessage("TOOLBUS_RUNS", records[1]?.sequence ?? 0);
  const watching = world.eventsOf(first);
  const { sessionId } = first;
  await Promise.all([1, 2, 3].map((count) => world.start({ sessionId }, `again ${count}`, { options: asking })));
  const events = await watching;
  expect(events.at(-1)).toMatchObject({
    sequence: records.length,
    event: { case: "ended", value: { state: RunState.FAILED, endReason: RunEndReason.INTERNAL_ERROR } },
  });
  const last = (await world.runs.listRuns({ sessionId })).runs.at(-1);
  await world.becomes(last!, RunState.REQUIRES_ACTION);
  expect(await Array.fromAsync(readSubject(world.bus, subject))).toHaveLength(records.length);
});
