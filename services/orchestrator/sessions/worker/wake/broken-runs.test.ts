import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { SessionWakeSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { claimRun } from "../../../log/claim.ts";
import { createJournal, type RunLog, readState } from "../../../log/journal.ts";
import { createMemoryRunLog } from "../../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../../testing/fakes/memory-queues.ts";
import { enqueue } from "../../queue.ts";
import { Slots } from "../../wakes/slots.ts";
import { createSessionWorker } from "../worker.ts";

const sessionId = "s";

/** A session with one run, which another process holds, and a worker that gets a wake-up of it. */
async function openHeldRun() {
  const log = createMemoryRunLog();
  const queues = createMemoryQueues();
  const journal = createJournal(log, "held", systemClock);
  await journal.append(() => ({ case: "accepted", value: { sessionId } }));
  await enqueue(queues, { sessionId, runId: "held", acceptedPosition: journal.position });
  const run = (await claimRun(journal, "elsewhere"))!;
  await run.append(() => ({ case: "turnCommitted", value: { turn: 1 } }));
  async function wake(seen: RunLog) {
    const worker = createSessionWorker({
      ...{ log: seen, queues, clock: systemClock, instance: "here", slots: new Slots(8) },
      holders: { ask: async () => "taken", notify: () => {}, requestSnapshot: () => {} },
      timers: { set: async () => {} },
      logger: { warn: () => {}, error: () => {} },
      turnLoop: async () => "parked",
      startFromInbox: async () => false,
      handover: new AbortController().signal,
      abandon: new AbortController().signal,
    });
    const settled: string[] = [];
    const put = (how: string) => () => void settled.push(how);
    const message = create(SessionWakeSchema, { sessionId, runId: "held", eventCount: 1 });
    const settling = { done: put("done"), later: put("later"), leave: put("leave") };
    await worker.work({ message, id: 1, ageMs: 0, deliveryCount: 1, ...settling });
    return settled;
  }
  return { log, run, wake };
}

const without =
  (lost: number, read: RunLog["read"]): RunLog["read"] =>
  async (...given) => {
    const part = await read(...given);
    return { ...part, records: part.records.filter(({ event }) => event.sequence !== lost) };
  };

test("LOOP-13 a run whose log came without an event once goes on where it is held, and the wake-up comes again", async () => {
  const { log, run, wake } = await openHeldRun();
  expect(await wake({ ...log, read: without(1, log.read) })).toEqual(["later"]);
  expect((await readState(log, "held"))?.phase.kind).toBe("working");
  await run.append(() => ({ case: "turnCommitted", value: { turn: 2 } }));
  expect(await wake(log)).toEqual(["later"]);
});

test("LOOP-10 a run whose log has lost an event is ended", async () => {
  const { log, wake } = await openHeldRun();
  const first: RunLog["first"] = async (runId, after = 0) =>
    log.records(runId).find(({ event, position }) => position > after && event.sequence !== 1);
  expect(await wake({ ...log, read: without(1, log.read), first })).toEqual(["done"]);
  expect(log.events("held").at(-1)?.event).toMatchObject({ case: "ended", value: { state: RunState.FAILED } });
});
