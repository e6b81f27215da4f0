import { setImmediate } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { SessionWakeSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import { RunAcceptedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { until } from "#runtime/time/until.ts";
import { claimRun } from "../../log/claim.ts";
import { createJournal, openJournal } from "../../log/journal.ts";
import { acceptRun } from "../../runs/create/acceptance.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import { enqueue } from "../queue.ts";
import { Slots } from "../wakes/slots.ts";
import type { HolderAnswer, Wake } from "../wakes/wake.ts";
import { type AcceptedHere, createAcceptedHere } from "./accepted-here.ts";
import { createSessionWorker } from "./worker.ts";
import type { WorkerOptions } from "./worker-options.ts";

const sessionId = "s";
const logger = { warn: () => {}, error: () => {} };

type TestWake = Wake & { settleWake: string };

function wakeOf(id: number, { runId, sessionId: of = sessionId }: { runId: string; sessionId?: string }): TestWake {
  const put = (how: string) => () => {
    wake.settleWake = how;
  };
  const message = create(SessionWakeSchema, { sessionId: of, runId, eventCount: 1 });
  const wake = {
    message,
    id,
    ageMs: 0,
    deliveryCount: 1,
    settleWake: "",
    done: put("done"),
    later: put("later"),
    leave: put("leave"),
  };
  return wake;
}

interface Setting {
  told?: HolderAnswer | "gone" | { now: HolderAnswer | "gone" | "unsure" };
  acceptedHere?: AcceptedHere;
  /** In place of one that ends the run when it is let go. */
  turn?: WorkerOptions["turnLoop"];
  startFromInbox?: WorkerOptions["startFromInbox"];
  handover?: AbortSignal;
  slots?: Slots;
}

/** A worker whose runs end when they are let go. */
function openWorker({ told = "gone", slots = new Slots(8), acceptedHere, turn, ...given }: Setting = {}) {
  const { startFromInbox, handover } = given;
  const log = createMemoryRunLog();
  const queues = createMemoryQueues();
  const finish = Promise.withResolvers<void>();
  const started: string[] = [];
  const worker = createSessionWorker({
    log,
    queues,
    holders: {
      ask: async () => (typeof told === "string" ? told : told.now),
      notify: () => {},
      requestSnapshot: () => {},
    },
    timers: { set: async () => {} },
    slots,
    instance: "here",
    clock: systemClock,
    logger,
    ...(acceptedHere && { acceptedHere }),
    turnLoop: async (claim, ...about) => {
      if (turn !== undefined) return turn(claim, ...about);
      const run = (await claim())!;
      started.push(run.state.runId);
      await finish.promise;
      await run.end(() => ({ state: RunState.COMPLETED, endReason: RunEndReason.FINAL_ANSWER }));
      return "ended";
    },
    startFromInbox: startFromInbox ?? (async () => false),
    handover: handover ?? new AbortController().signal,
    abandon: new AbortController().signal,
  });
  const accept = async (runId: string) => {
    const journal = createJournal(log, runId, systemClock);
    await journal.append(() => ({ case: "accepted", value: { sessionId } }));
    await enqueue(queues, { sessionId, runId, acceptedPosition: journal.position });
    return journal;
  };
  return { worker, accept, started, letGo: finish.resolve, log, queues };
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
  expect([firstWake.settleWake, early.settleWake]).toEqual(["done", "later"]);

  await accept("second");
  const again = wakeOf(2, { runId: "second" });
  await worker.work(again);
  expect(again.settleWake).toBe("done");
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
  expect(further.settleWake, "its run is to be worked on").toBe("");
  letGo();
  await working;
  expect(started).toEqual(["first", "second"]);
  expect([firstWake.settleWake, further.settleWake]).toEqual(["done", "done"]);
});

test("LOOP-13 a wake-up of a session that another process works on is put back", async () => {
  const { worker, accept, started } = openWorker({ told: "taken" });
  await claimRun(await accept("first"), "elsewhere");
  const wake = wakeOf(1, { runId: "first" });
  await worker.work(wake);
  expect(wake.settleWake).toBe("later");
  expect(started).toEqual([]);
});

test("LOOP-13 a wake-up that comes back while another process works on its session reads no log again", async () => {
  const told = { now: "taken" as HolderAnswer | "gone" | "unsure" };
  const { worker, accept, started, letGo, log } = openWorker({ told });
  const journal = await accept("first");
  await claimRun(journal, "elsewhere");
  await accept("second"); // waits for its turn, and its wake-up for a holder that is gone
  let reads = 0;
  const { read } = log;
  log.read = (...about) => read(...about).finally(() => (reads += 1));
  const comes = async (id: number) => {
    const wake = wakeOf(id, { runId: "second" });
    await worker.work(wake);
    return wake.settleWake;
  };
  expect([await comes(1), reads]).toEqual(["later", 1]);
  expect([await comes(1), await comes(2), reads]).toEqual(["later", "later", 1]);
  told.now = "unsure";
  expect([await comes(1), reads]).toEqual(["later", 1]);
  told.now = "leave";
  expect([await comes(1), reads]).toEqual(["leave", 1]);
  told.now = "gone";
  const working = comes(1);
  await until(() => started.includes("first"), { what: "the first run to be taken over" });
  letGo();
  expect(await working).toBe("done");
  expect(started).toEqual(["first", "second"]);
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
    events += stored.records.length;
    return stored;
  };
  const further = Array.from({ length: 10 }, (_, n) => worker.work(wakeOf(n + 2, { runId: "first" })));
  await Promise.all(further);
  expect(events).toBe(0);
  letGo();
  await working;
});

test("LOOP-13 runs of a session that were accepted in this process are worked on from what their creators know, once they are stored", async () => {
  const acceptedHere = createAcceptedHere();
  const { worker, started, letGo, log, queues } = openWorker({ acceptedHere });
  let reads = 0;
  const counted =
    <Arguments extends unknown[], Result>(read: (...about: Arguments) => Result) =>
    (...about: Arguments) => {
      reads += 1;
      return read(...about);
    };
  Object.assign(log, { read: counted(log.read), first: counted(log.first), last: counted(log.last) });
  const before = counted(queues.before);
  queues.before = async (entry) => (entry.queued.previousRunId === "" ? undefined : before(entry));
  for (const isFirst of [true, false]) {
    const sent = Promise.withResolvers<string>();
    const stored = Promise.withResolvers<void>();
    const wakes = {
      async send({ runId }: { runId: string }) {
        sent.resolve(runId);
        await stored.promise;
      },
    };
    const keys = { take: async () => ({ runId: "", keyPosition: 0 }), find: async () => undefined };
    const options = { ...{ log, queues, acceptedHere, clock: systemClock }, wakes, keys };
    const accepting = acceptRun(options, create(RunAcceptedSchema, { sessionId }), { isFirst });
    const runId = await sent.promise;
    const wake = wakeOf(1, { runId });
    const working = worker.work(wake);
    expect([started.includes(runId), wake.settleWake]).toEqual([false, ""]);
    stored.resolve();
    await accepting;
    await until(() => started.includes(runId), { what: "the run to be worked on" });
    letGo();
    await working;
    expect([wake.settleWake, reads]).toEqual(["done", 0]);
  }
});

test("LOOP-13 a run that is accepted while its session is worked on is worked on from what its creator knows, too", async () => {
  const acceptedHere = createAcceptedHere();
  const { worker, accept, started, letGo, log, queues } = openWorker({ acceptedHere });
  await accept("first");
  const working = worker.work(wakeOf(1, { runId: "first" }));
  await until(() => started.includes("first"), { what: "the first run to be worked on" });
  {
    using opened = acceptedHere.open("second");
    const journal = await accept("second");
    opened.resolve({ journal, entry: (await queues.last(sessionId))! });
  }
  log.read = () => Promise.reject(new Error("nobody has to look"));
  await worker.work(wakeOf(2, { runId: "second" }));
  letGo();
  await working;
  expect(started).toEqual(["first", "second"]);
});

test("SEC-6 a run that is canceled while it waits for the one before it is ended without its principal's turn", async () => {
  const slots = new Slots(8);
  const acceptedHere = createAcceptedHere();
  const { worker, accept, started, letGo, log, queues } = openWorker({ slots, acceptedHere });
  await claimRun(await accept("first"), "gone");
  slots.take();
  const working = worker.work(wakeOf(1, { runId: "first" }));
  await until(() => started.includes("first"), { what: "the first run to be worked on" });
  for (let n = 0; n < 7; n += 1) slots.take();
  for (let n = 0; n < 8; n += 1) slots.hold("");
  const journal = await accept("second");
  {
    using opened = acceptedHere.open("second");
    const known = await openJournal(log, "second", systemClock);
    opened.resolve({ journal: known, entry: (await queues.last(sessionId))! });
  }
  await worker.work(wakeOf(2, { runId: "second" }));
  await journal.append(() => ({ case: "cancelRequested", value: {} }));
  expect(worker.answer(sessionId, undefined)).toBe("taken");
  letGo();
  await working;
  expect(started).toEqual(["first", "second"]);
});

test("LOOP-13 a run whose creator fails here is looked for like any other", async () => {
  const acceptedHere = createAcceptedHere();
  const { worker, accept, started, letGo } = openWorker({ acceptedHere });
  const opened = acceptedHere.open("first");
  await accept("first");
  const working = worker.work(wakeOf(1, { runId: "first" }));
  opened[Symbol.dispose]();
  await until(() => started.includes("first"), { what: "the run to be worked on" });
  letGo();
  await working;
});

test("LOOP-16 a run that has parked is put down without another look at its log", async () => {
  const { worker, accept, log } = openWorker({
    turn: async (claim) => {
      const run = (await claim())!;
      await run.append(() => ({ case: "turnCommitted", value: { turn: 1, items: [callItem] } }));
      log.read = () => Promise.reject(new Error("nobody has to look"));
      await run.append(() => ({ case: "parked", value: { calls: [callItem.item.value] } }));
      return "parked";
    },
  });
  await accept("first");
  const wake = wakeOf(1, { runId: "first" });
  await worker.work(wake);
  expect(wake.settleWake).toBe("done");
});

const callItem = { item: { case: "functionCall" as const, value: { callId: "c", name: "ask", argumentsJson: "{}" } } };

test("LOOP-13 when a run has ended, what this process has read of its log is not read again", async () => {
  const { worker, accept, log, letGo } = openWorker();
  await accept("first");
  log.read = () => Promise.reject(new Error("its first event is all that is read"));
  letGo();
  await worker.work(wakeOf(1, { runId: "first" }));
  expect(log.events("first").at(-1)?.event.case).toBe("ended");
});

describe("an inbox that cannot be read when a run ends", () => {
  const silent = async (): Promise<boolean> => {
    throw new Failure("unavailable", "spaces are silent", { reason: "SERVICE_UNAVAILABLE" });
  };

  test("TOOL-9 leaves a wake-up behind: that of the run, and those that came meanwhile", async () => {
    const { worker, accept, started, letGo } = openWorker({ startFromInbox: silent });
    await accept("first");
    const ofRun = wakeOf(1, { runId: "first" });
    const working = worker.work(ofRun);
    await until(() => started.includes("first"), { what: "the run to be worked on" });
    const ofInbox = wakeOf(2, { runId: "" });
    await worker.work(ofInbox);
    letGo();
    await working;
    expect([ofRun.settleWake, ofInbox.settleWake]).toEqual(["later", "later"]);
  });

  test("TOOL-9 nor may a process start a run that hands its runs over: the wake-ups go to another one", async () => {
    const handover = new AbortController();
    const { worker, accept, started, letGo } = openWorker({ handover: handover.signal });
    await accept("first");
    const ofRun = wakeOf(1, { runId: "first" });
    const working = worker.work(ofRun);
    await until(() => started.includes("first"), { what: "the run to be worked on" });
    const ofInbox = wakeOf(2, { runId: "" });
    await worker.work(ofInbox);
    handover.abort();
    letGo();
    await working;
    expect([ofRun.settleWake, ofInbox.settleWake]).toEqual(["later", "later"]);
  });

  test("SEC-5 is asked for less often the longer nobody answers, by all sessions, and as before once somebody does", async () => {
    let answer = silent;
    const { worker } = openWorker({ startFromInbox: () => answer() });
    const delayOf = async (id: number) => {
      const delays: number[] = [];
      const wake = wakeOf(id, { runId: "", sessionId: `s${id}` });
      await worker.work({ ...wake, later: (ms) => void delays.push(ms) });
      return delays[0] ?? 0;
    };
    const delays: number[] = [];
    for (let id = 1; id <= 6; id += 1) delays.push(await delayOf(id));
    expect(delays[0]).toBeLessThanOrEqual(1_500);
    expect(delays[5]).toBeGreaterThan(1_600);
    expect(Math.max(...delays)).toBeLessThanOrEqual(5_000);
    answer = async () => false;
    await delayOf(7);
    answer = silent;
    expect(await delayOf(8)).toBeLessThanOrEqual(1_500);
  });

  test("SEC-5 is asked for by one session at a time until somebody answers", async () => {
    const asked: string[] = [];
    let answer = silent;
    const held = Promise.withResolvers<boolean>();
    const { worker } = openWorker({
      startFromInbox: (of) => {
        asked.push(of);
        return answer();
      },
    });
    const wakes = [1, 2, 3, 4].map((id) => wakeOf(id, { runId: "", sessionId: `s${id}` }));
    const [first, second, third, fourth] = wakes as [TestWake, TestWake, TestWake, TestWake];
    await worker.work(first);
    answer = () => held.promise;
    const probing = worker.work(second);
    await until(() => asked.length === 2);
    await worker.work(third);
    expect([asked, third.settleWake]).toEqual([["s1", "s2"], "later"]);
    held.resolve(false);
    await probing;
    await worker.work(fourth);
    expect([asked.at(-1), second.settleWake, fourth.settleWake]).toEqual(["s4", "done", "done"]);
  });
});

test("SEC-6 a run that waits for its principal's turn ends at once when it is canceled, and goes to another process with the wake-up", async () => {
  const slots = new Slots(8);
  const full = Array.from({ length: 7 }, () => {
    slots.take();
    return slots.begin("");
  });
  expect(full).not.toContain(undefined);
  const handover = new AbortController();
  const ends: WorkerOptions["turnLoop"] = async (claim) => {
    const run = (await claim())!;
    started.push(run.state.runId);
    await run.end(() => ({ state: RunState.CANCELED, endReason: RunEndReason.CANCELED }));
    return "ended";
  };
  const started: string[] = [];
  const { worker, accept } = openWorker({ slots, handover: handover.signal, turn: ends });
  const journal = await accept("first");
  const [wake, ofCancel] = [wakeOf(1, { runId: "first" }), wakeOf(2, { runId: "first" })];
  slots.take();
  const working = worker.work(wake);
  await until(() => slots.free === 1, { what: "the run to wait without a slot" });
  await journal.append(() => ({ case: "cancelRequested", value: {} }));
  await worker.work(ofCancel);
  await working;
  expect([started, wake.settleWake, ofCancel.settleWake]).toEqual([["first"], "done", "done"]);

  await accept("second");
  const again = wakeOf(3, { runId: "second" });
  const workingAgain = worker.work(again);
  await until(() => slots.free === 1, { what: "the next one to wait" });
  handover.abort();
  await workingAgain;
  expect([started, again.settleWake]).toEqual([["first"], "later"]);
});

test("SEC-6 a run that had begun goes on, however many of its principal wait", async () => {
  const slots = new Slots(8);
  const full = Array.from({ length: 7 }, () => {
    slots.take();
    return slots.begin("");
  });
  expect(full).not.toContain(undefined);
  slots.take();
  const { worker, accept, started, letGo } = openWorker({ slots });
  await claimRun(await accept("first"), "gone");
  const working = worker.work(wakeOf(1, { runId: "first" }));
  await until(() => started.includes("first"), { what: "the run to be taken over" });
  letGo();
  await working;
});

test("LOOP-15 a canceled run is claimed once to be ended, whoever asks for its session meanwhile", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const turn: WorkerOptions["turnLoop"] = async (claim, _, signal) => {
    const run = (await claim())!;
    await unlessAborted(promise, signal);
    await run.end(() => ({ state: RunState.CANCELED, endReason: RunEndReason.CANCELED }));
    return "ended";
  };
  const { worker, accept, log } = openWorker({ turn });
  const journal = await accept("first");
  await journal.append(() => ({ case: "cancelRequested", value: {} }));
  const working = worker.work(wakeOf(1, { runId: "first" }));
  await until(() => log.events("first").length === 3);
  for (let n = 0; n < 3; n += 1) {
    expect(worker.answer(sessionId, undefined)).toBe("taken");
    await setImmediate();
  }
  resolve();
  await working;
  const kinds = log.events("first").map(({ event }) => event.case);
  expect(kinds).toEqual(["accepted", "cancelRequested", "claimed", "ended"]);
});
