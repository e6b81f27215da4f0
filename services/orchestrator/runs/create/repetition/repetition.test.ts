import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { RunAcceptedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { CreateRunRequestSchema, ForkRunRequestSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionSchema, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { callerNamed } from "#runtime/rpc/identity.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal, openJournal } from "../../../log/journal.ts";
import type { SessionQueues } from "../../../sessions/queue.ts";
import { createFakeRouter } from "../../../testing/fakes/fake-router.ts";
import { createMemoryKeys } from "../../../testing/fakes/memory-keys.ts";
import { createMemoryRunLog, type MemoryRunLog } from "../../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../../testing/fakes/memory-queues.ts";
import { deleteRun } from "../../deletion.ts";
import { acceptRun } from "../acceptance.ts";
import { type CreationOptions, createRun } from "../creation.ts";
import { forkRun } from "../fork.ts";

const by = { signal: new AbortController().signal, principal: "ada", caller: callerNamed("ada") };

function said(text: string) {
  return { item: { case: "message" as const, value: { role: Role.USER, content: textContent(text) } } };
}

function openOptions(room?: { maxEventBytes: number }) {
  const log = createMemoryRunLog(room);
  let sessions = 0;
  const sessionOf = (id: string, principal = "ada") =>
    create(SessionSchema, { id, agent: "a", principal, state: SessionState.ACTIVE });
  const options: CreationOptions & { log: MemoryRunLog } = {
    runServers: "http",
    boundResult: async (result) => result,
    log,
    queues: createMemoryQueues(),
    wakes: { send: async () => {} },
    keys: createMemoryKeys(),
    agents: { getAgent: async (name: string) => create(AgentSchema, { name }) },
    clock: systemClock,
    router: createFakeRouter([]),
    sessions: {
      getSession: async (id) => sessionOf(id),
      createSession: async (_, { sessionId, principal }) => {
        sessions += 1;
        return sessionOf(sessionId ?? `new-${sessions}`, principal);
      },
    },
  };
  const add = (runId: string, sessionId: string) =>
    createJournal(log, runId, systemClock).append(() => ({
      case: "accepted",
      value: { sessionId, agent: "a", principal: "ada", input: [said("before")] },
    }));
  return { options, add };
}

const changes: [string, Record<string, unknown>, string][] = [
  ["input", { input: [said("stop")] }, "input"],
  ["more input", { input: [said("go"), said("go")] }, "input"],
  ["options", { options: { instructions: "Be long." } }, "options"],
  ["no options", { options: undefined }, "options"],
  ["where it stops", { options: { instructions: "Be brief.", limits: { stopAtTools: ["submit"] } } }, "options"],
  ["the run before", { previousRunId: "own" }, "previous_run_id"],
  ["both", { input: [], previousRunId: "own" }, "input, previous_run_id"],
];

test.each(changes)(
  "LOOP-13 a key that comes again with another request is refused, and told what differs: %s",
  async (_, change, what) => {
    const { options, add } = openOptions();
    await add("own", "s");
    const start = (more: object) => {
      const asked = {
        sessionId: "s",
        input: [said("go")],
        options: { instructions: "Be brief." },
        idempotencyKey: "k",
      };
      return createRun(options, create(CreateRunRequestSchema, { ...asked, ...more }), by);
    };
    const refusal = {
      code: "already_exists",
      reason: "IDEMPOTENCY_KEY_REUSED",
      message: expect.stringContaining(what),
    };
    const { runId } = await start({});
    await expect(start(change)).rejects.toMatchObject({ ...refusal, metadata: { run_id: runId, fields: what } });
    const later = { options: { instructions: "Be brief.", limits: { timeout: durationFromMs(7) } } };
    expect((await start(later)).runId).toBe(runId);
  },
);

test("LOOP-13 of two creations at once with one key and different input one is accepted, and the other is told", async () => {
  const { options } = openOptions();
  const start = (text: string) =>
    createRun(
      options,
      create(CreateRunRequestSchema, { sessionId: "s", input: [said(text)], idempotencyKey: "k" }),
      by,
    );
  const outcomes = await Promise.allSettled([start("one"), start("two")]);
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect(outcomes.find(({ status }) => status === "rejected")).toMatchObject({
    reason: { reason: "IDEMPOTENCY_KEY_REUSED" },
  });
});

test("LOOP-13 a fork that is repeated with its key answers the first one's run, unless it asks for something else", async () => {
  const { options, add } = openOptions();
  await add("r", "s");
  await add("other", "t");
  await createJournal(options.log, "r", systemClock).append(
    (state) => (state === undefined ? undefined : { case: "claimed", value: {} }),
    { epoch: 1 },
  );
  const fork = async (more: object, principal = "ada") => {
    const asked = { runId: "r", atSequence: 0, input: [said("go on")], idempotencyKey: "k" };
    const who = { ...by, principal };
    return (await forkRun(options, create(ForkRunRequestSchema, { ...asked, ...more }), who)).runId;
  };
  const [first, ...same] = await Promise.all([fork({}), fork({}), fork({})]);
  expect(new Set([first, ...same, await fork({})]).size).toBe(1);
  for (const [change, fields] of [
    [{ input: [] }, "input"],
    [{ atSequence: 1 }, "at_sequence"],
    [{ atSequence: 1, input: [said("x")] }, "input, at_sequence"],
  ] as const) {
    await expect(fork(change)).rejects.toMatchObject({
      code: "already_exists",
      reason: "IDEMPOTENCY_KEY_REUSED",
      metadata: { run_id: first, fields },
    });
  }
  const others = [
    await fork({ idempotencyKey: "l" }),
    await fork({ runId: "other" }),
    await fork({}, "bob"),
    await fork({ idempotencyKey: "" }),
    await fork({ idempotencyKey: "" }),
  ];
  expect(new Set([first, ...others]).size).toBe(6);
});

test("LOOP-13 a key whose run was deleted is refused: nothing runs again under the id of that run", async () => {
  const { options } = openOptions();
  const { log } = options;
  const request = { sessionId: "s", input: [said("go")], idempotencyKey: "k" };
  const start = () => createRun(options, create(CreateRunRequestSchema, request), by);
  const { runId } = await start();
  const journal = await openJournal(log, runId, systemClock);
  await journal.append(() => ({ case: "ended", value: { state: RunState.COMPLETED } }));
  const removeLog = async (id: string) => void log.purge(id);
  const retention = { removeLog };
  await deleteRun({ log, clock: systemClock, retention, tellDeleted: () => {}, audit: () => {} }, runId, by.caller);
  await expect(start()).rejects.toMatchObject({
    code: "not_found",
    reason: "RUN_NOT_FOUND",
    metadata: { run_id: runId },
    message: expect.stringContaining("deleted"),
  });
  expect(await log.first(runId)).toBeUndefined();
});

test("LOOP-13 who repeats a request while the first is accepted finds its run, which no one deleted", async () => {
  const request = create(RunAcceptedSchema, { sessionId: "s", agent: "a", idempotencyKey: "k" });
  const queues = createMemoryQueues();
  const shared = { log: createMemoryRunLog(), keys: createMemoryKeys(), clock: systemClock };
  const hasKey = Promise.withResolvers<void>();
  const maySend = Promise.withResolvers<void>();
  const send = () => {
    hasKey.resolve();
    return maySend.promise;
  };
  const first = acceptRun({ ...shared, queues, wakes: { send } }, request);
  await hasKey.promise;
  const last: SessionQueues["last"] = async (sessionId) => {
    maySend.resolve();
    await first; // it is accepted and enqueued after the log was found empty
    return queues.last(sessionId);
  };
  const found = await acceptRun({ ...shared, queues: { ...queues, last }, wakes: { send: async () => {} } }, request);
  expect(found.runId).toBe((await first).runId);
});

test("LOOP-13 a request that is too large takes no key", async () => {
  const { options } = openOptions({ maxEventBytes: 1_024 });
  const start = (text: string) =>
    createRun(
      options,
      create(CreateRunRequestSchema, { sessionId: "s", input: [said(text)], idempotencyKey: "k" }),
      by,
    );
  await expect(start("x".repeat(2_000))).rejects.toMatchObject({ reason: "MESSAGE_TOO_LARGE" });
  expect(await options.keys.find("s", "k")).toBeUndefined();
  expect((await start("go")).accepted.idempotencyKey).toBe("k");
});
