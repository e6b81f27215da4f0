import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type QueuedRun, RunStatus, SessionWakeSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { createJournal } from "../run/journal.ts";
import { createMemoryRunLog } from "../run/memory-log.fixture.ts";
import { enqueue, type QueueEntry, type SessionQueues } from "./queue.ts";
import type { Wake } from "./wake.ts";
import { createSessionWorker } from "./worker.ts";

const sessionId = "s";
const logger = { warn: () => {}, error: () => {} };

function createMemoryQueues(): SessionQueues {
  const entries: QueueEntry[] = [];
  return {
    last: async () => entries.at(-1),
    before: async ({ queued }) => entries.find(({ position }) => position === Number(queued.previousEntrySequence)),
    async append(queued: QueuedRun) {
      if ((entries.at(-1)?.position ?? 0) !== Number(queued.previousEntrySequence)) return "conflict";
      entries.push({ queued, position: 1_000 + entries.length });
      return "appended";
    },
  };
}

function wakeOf(id: number, { runId }: { runId: string }): Wake & { putDown: string } {
  const put = (how: string) => () => {
    wake.putDown = how;
  };
  const message = create(SessionWakeSchema, { sessionId, runId, eventCount: 1 });
  const wake = { message, id, ageMs: 0, putDown: "", done: put("done"), later: put("later"), leave: put("leave") };
  return wake;
}

test("LOOP-13 a wake-up that is earlier than its news waits for them, also while the session is worked on", async () => {
  const log = createMemoryRunLog();
  const queues = createMemoryQueues();
  const finish = Promise.withResolvers<void>();
  const started: string[] = [];
  const worker = createSessionWorker({
    log,
    queues,
    holders: { ask: async () => "gone", nudge: () => {}, askForSnapshot: () => {} },
    timers: { set: async () => {} },
    instance: "here",
    clock: systemClock,
    logger,
    turnLoop: async (run) => {
      started.push(run.state.runId);
      await finish.promise;
      await run.end({ status: RunStatus.COMPLETED, reason: "final_answer" });
      return "ended";
    },
    startFromInbox: async () => false,
    handover: new AbortController().signal,
    abandon: new AbortController().signal,
  });
  const accept = async (runId: string) => {
    const journal = createJournal(log, runId, systemClock);
    await journal.append(() => ({ case: "accepted", value: { sessionId } }));
    await enqueue(queues, { sessionId, runId, acceptedPosition: journal.position });
  };

  await accept("first");
  const firstWake = wakeOf(1, { runId: "first" });
  const working = worker.work(firstWake);
  await until(() => started.includes("first"), { what: "the first run to be worked on" });
  const early = wakeOf(2, { runId: "second" });
  await worker.work(early);
  finish.resolve();
  await working;
  expect([firstWake.putDown, early.putDown]).toEqual(["done", "later"]);

  await accept("second");
  const again = wakeOf(2, { runId: "second" });
  await worker.work(again);
  expect(again.putDown).toBe("done");
  expect(started).toEqual(["first", "second"]);
});
