import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type QueuedRun, RunStatus, SessionWakeSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { claimRun } from "../run/claim.ts";
import { createJournal } from "../run/journal.ts";
import { createMemoryRunLog } from "../run/memory-log.fixture.ts";
import { enqueue, type QueueEntry, type SessionQueues } from "./queue.ts";
import type { HolderAnswer, Wake } from "./wake.ts";
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

/** A worker whose runs end when they are let go. */
function openWorker({ told = "gone" }: { told?: HolderAnswer | "gone" } = {}) {
  const log = createMemoryRunLog();
  const queues = createMemoryQueues();
  const finish = Promise.withResolvers<void>();
  const started: string[] = [];
  const worker = createSessionWorker({
    log,
    queues,
    holders: { ask: async () => told, nudge: () => {}, askForSnapshot: () => {} },
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
    return journal;
  };
  return { worker, accept, started, letGo: finish.resolve, log };
}

test("LOOP-13 a wake-up that is earlier than its news waits for them, also while the session is worked on", async () => {
  const { worker, accept, started, letGo } = openWorker();
  await accept("first");
  const firstWake = wakeOf(1, { runId: "first" });
  const working = worker.work(firstWake);
  await until(() => started.includes("first"), { what: "the first run to be worked on" });
  const early = wakeOf(2, { runId: "second" });
  await worker.work(early);
  letGo();
  await working;
  expect([firstWake.putDown, early.putDown]).toEqual(["done", "later"]);

  await accept("second");
  const again = wakeOf(2, { runId: "second" });
  await worker.work(again);
  expect(again.putDown).toBe("done");
  expect(started).toEqual(["first", "second"]);
});

test("LOOP-13 a wake-up of a session that is worked on stands until its work is done: the first one may be gone", async () => {
  const { worker, accept, started, letGo } = openWorker();
  await accept("first");
  const firstWake = wakeOf(1, { runId: "first" });
  const working = worker.work(firstWake);
  await until(() => started.includes("first"), { what: "the first run to be worked on" });
  await accept("second");
  const further = wakeOf(2, { runId: "second" });
  await worker.work(further);
  expect(further.putDown, "its run is to be worked on").toBe("");
  letGo();
  await working;
  expect(started).toEqual(["first", "second"]);
  expect([firstWake.putDown, further.putDown]).toEqual(["done", "done"]);
});

test("LOOP-13 a wake-up of a session that another process works on is put back", async () => {
  const { worker, accept, started } = openWorker({ told: "taken" });
  await claimRun(await accept("first"), "elsewhere");
  const wake = wakeOf(1, { runId: "first" });
  await worker.work(wake);
  expect(wake.putDown).toBe("later");
  expect(started).toEqual([]);
});

test("LOOP-13 what a wake-up costs does not grow with the log of its run", async () => {
  const { worker, accept, started, letGo, log } = openWorker();
  const journal = await accept("first");
  for (let n = 0; n < 200; n += 1) await journal.append(() => ({ case: "callStarted", value: { callId: `c${n}` } }));
  const working = worker.work(wakeOf(1, { runId: "first" }));
  await until(() => started.includes("first"), { what: "the run to be worked on" });
  const { read } = log;
  let events = 0;
  log.read = async (...about) => {
    const stored = await read(...about);
    events += stored.length;
    return stored;
  };
  const further = Array.from({ length: 10 }, (_, n) => worker.work(wakeOf(n + 2, { runId: "first" })));
  await Promise.all(further);
  expect(events).toBe(0);
  letGo();
  await working;
});
