import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { SessionSchema, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal, type RunLog } from "../../log/journal.ts";
import { enqueue, entriesBackward } from "../../sessions/queue.ts";
import { createFakeInbox, inboxEvent } from "../../testing/fakes/fake-spaces.ts";
import { createMemoryKeys } from "../../testing/fakes/memory-keys.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import { defaultMaxSelfWakes, type SelfWakeOptions, startFromInbox } from "./self-wake.ts";

const event = inboxEvent({ sessionId: "s", agent: "a", eventId: "tr:1", text: "news" });
const said = inboxEvent({ sessionId: "s", agent: "a", eventId: "msg:1", text: '[Ada: "hello"]', isFromPerson: true });
const signal = new AbortController().signal;

/** What a process needs to start a run from an inbox; it dies at the n-th thing that it does to the outside. */
function openParts() {
  const log = createMemoryRunLog();
  const queues = createMemoryQueues();
  const keys = createMemoryKeys();
  const wakes: string[] = [];
  let left = Number.POSITIVE_INFINITY;
  const step = async <T>(action: () => Promise<T>): Promise<T> => {
    left -= 1;
    if (left < 0) throw new Error("killed");
    return action();
  };
  const options: SelfWakeOptions = {
    clock: systemClock,
    log: { ...log, append: (...given) => step(() => log.append(...given)) },
    queues: { ...queues, append: (...given) => step(() => queues.append(...given)) },
    wakes: { send: ({ runId }) => step(async () => void wakes.push(runId)) },
    keys: {
      find: keys.find,
      take: (...given) => step(() => keys.take(...given)),
    },
    sessions: { getSession: async (id) => create(SessionSchema, { id, agent: "a", state: SessionState.ACTIVE }) },
    agents: { getAgent: async (name) => create(AgentSchema, { name }) },
    inbox: createFakeInbox(event),
    logger: { warn: () => {}, error: () => {} },
    audit: () => {},
  };
  const runIds = async () =>
    (await Array.fromAsync(entriesBackward(queues, await queues.last("s")))).map(({ queued }) => queued.runId);
  const dieAfter = (count: number) => {
    left = count;
  };
  return { options, log, queues, wakes, runIds, dieAfter };
}

test("TOOL-9 LOOP-13 an event starts one run, wherever a process dies while it starts it", async () => {
  for (let survives = 0; survives <= 4; survives += 1) {
    const { options, log, queues, wakes, runIds, dieAfter } = openParts();
    dieAfter(survives);
    const first = await startFromInbox(options, "s", signal).catch(() => "killed");
    expect(first).toBe(survives < 4 ? "killed" : true);
    dieAfter(Number.POSITIVE_INFINITY);
    // the wake-up of the inbox comes again; so do those that were sent for the run
    for (const runId of [...wakes]) {
      const [stored] = (await log.read(runId, 0)).records;
      if (stored) await enqueue(queues, { sessionId: "s", runId, acceptedPosition: stored.position });
    }
    await Promise.all([startFromInbox(options, "s", signal), startFromInbox(options, "s", signal)]);
    const ids = await runIds();
    expect(ids).toHaveLength(1);
    expect(log.events(ids[0]!).map(({ event }) => event.case)).toEqual(["accepted"]);
    expect(log.events(ids[0]!)[0]?.event.value).toMatchObject({ selfWakeCount: 1, input: [] });
  }
});

/** Ends a run as another process does. */
async function endRun(
  log: RunLog,
  runId: string,
  endReason: RunEndReason,
  taken: readonly string[] = [],
): Promise<void> {
  const journal = createJournal(log, runId, systemClock);
  await journal.refresh();
  if (taken.length > 0) await journal.append(() => ({ case: "inboxTaken", value: { eventIds: [...taken] } }));
  await journal.append(() => ({ case: "ended", value: { state: RunState.FAILED, endReason } }));
}

test("TOOL-9 an event whose run could not read its inbox starts another run, and one whose run took it starts none", async () => {
  const { options, log, runIds } = openParts();
  const end = (...given: [string, RunEndReason, string[]?]) => endRun(log, ...given);
  expect(await startFromInbox(options, "s", signal)).toBe(true);
  await end((await runIds())[0]!, RunEndReason.INBOX_UNAVAILABLE);
  expect(await startFromInbox(options, "s", signal)).toBe(true);
  expect(await startFromInbox(options, "s", signal)).toBe(true);
  expect(await runIds()).toHaveLength(2);
  await end((await runIds())[0]!, RunEndReason.MODEL_ERROR, ["tr:1"]);
  expect(await startFromInbox(options, "s", signal)).toBe(false);
  expect(await runIds()).toHaveLength(2);
});

test("TOOL-9 LOOP-16 an event that its run did not take wakes nobody again, however often its session is looked at", async () => {
  const { options, log, wakes, runIds } = openParts();
  await startFromInbox(options, "s", signal);
  await endRun(log, (await runIds())[0]!, RunEndReason.MODEL_ERROR);
  const before = wakes.length;
  for (let look = 0; look < 3; look += 1) expect(await startFromInbox(options, "s", signal)).toBe(false);
  expect(wakes).toHaveLength(before);
});

test("TOOL-9 an event for which a run had no room beside others starts the next one", async () => {
  const { options, log, runIds } = openParts();
  await startFromInbox(options, "s", signal);
  await endRun(log, (await runIds())[0]!, RunEndReason.FINAL_ANSWER, ["tr:0"]);
  expect(await startFromInbox(options, "s", signal)).toBe(true);
  expect(await startFromInbox(options, "s", signal)).toBe(true);
  expect(await runIds()).toHaveLength(2);
  await endRun(log, (await runIds())[0]!, RunEndReason.FINAL_ANSWER, ["tr:1"]);
  expect(await startFromInbox(options, "s", signal)).toBe(false);
});

test("TOOL-9 an event whose run could not read its inbox starts another run though a client deleted that run", async () => {
  const { options, log, runIds } = openParts();
  for (const taken of [[], ["tr:0"]]) {
    await startFromInbox(options, "s", signal);
    const [runId] = await runIds();
    await endRun(log, runId!, RunEndReason.INBOX_UNAVAILABLE, taken);
    log.purge(runId!);
  }
  expect(await startFromInbox(options, "s", signal)).toBe(true);
  expect(await startFromInbox(options, "s", signal)).toBe(true);
  expect(await runIds()).toHaveLength(3);
});

test("TOOL-9 a client that deletes each run of an event starts no runs of it without end", async () => {
  const { options, log, runIds } = openParts();
  let started = 0;
  for (; started < 50 && (await startFromInbox(options, "s", signal)); started += 1) {
    const [runId] = await runIds();
    await endRun(log, runId!, RunEndReason.INBOX_UNAVAILABLE);
    log.purge(runId!);
  }
  expect(started).toBe(defaultMaxSelfWakes);
});

test("TOOL-9 what a person said starts no runs without end while each of them cannot read its inbox", async () => {
  const { options, log, runIds } = openParts();
  const refused: (string | undefined)[] = [];
  const parts: SelfWakeOptions = {
    ...options,
    inbox: createFakeInbox(said),
    audit: ({ rule = "" }) => void refused.push(rule),
  };
  let started = 0;
  for (; started < 50 && (await startFromInbox(parts, "s", signal)); started += 1)
    await endRun(log, (await runIds())[0]!, RunEndReason.INBOX_UNAVAILABLE);
  expect(started).toBe(defaultMaxSelfWakes);
  expect(refused).toEqual(["limits.maxSelfWakes"]);
});

test("TOOL-9 what a person said starts a run once its inbox can be read again, however many looks failed before", async () => {
  const { options, log, runIds } = openParts();
  const inbox = createFakeInbox(said);
  let isBroken = true;
  const parts: SelfWakeOptions = {
    ...options,
    inbox: {
      ...inbox,
      getRunContext: async (...given) =>
        isBroken ? Promise.reject(new Error("broken")) : inbox.getRunContext(...given),
    },
  };
  for (let look = 0; look < 2 * defaultMaxSelfWakes; look += 1) {
    const isStarted = await startFromInbox(parts, "s", signal).catch(() => false);
    if (isStarted) await endRun(log, (await runIds())[0]!, RunEndReason.INBOX_UNAVAILABLE);
  }
  isBroken = false;
  expect(await startFromInbox(parts, "s", signal)).toBe(true);
  expect(await runIds()).toHaveLength(2);
});
