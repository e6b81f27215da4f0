import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import {
  CreateRunRequestSchema,
  ForkRunRequestSchema,
  type InputItemSchema,
} from "#gen/toolbus/run/v1/run_service_pb.ts";
import { Carry, SessionSchema, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { callerNamed } from "#runtime/rpc/identity.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal } from "../../log/journal.ts";
import { createFakeRouter } from "../../testing/fakes/fake-router.ts";
import { createMemoryKeys } from "../../testing/fakes/memory-keys.ts";
import { createMemoryRunLog } from "../../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../../testing/fakes/memory-queues.ts";
import { type CreationOptions, createRun } from "./creation.ts";
import { forkRun } from "./fork.ts";

const by = { signal: new AbortController().signal, principal: "ada", caller: callerNamed("ada") };

function said(text: string) {
  return { item: { case: "message" as const, value: { role: Role.USER, content: textContent(text) } } };
}

function openOptions(agent: string, switching: MessageInitShape<typeof SessionSchema> = {}) {
  const log = createMemoryRunLog();
  let sessions = 0;
  const sessionOf = (id: string) =>
    create(SessionSchema, { id, agent, principal: "ada", state: SessionState.ACTIVE, ...(switching as object) });
  const options: CreationOptions = {
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
      createSession: async () => {
        sessions += 1;
        return sessionOf(`new-${sessions}`);
      },
    },
  };
  const add = (runId: string, sessionId: string, standing: { agent: string; switchCount?: number }) =>
    createJournal(log, runId, systemClock).append(() => ({
      case: "accepted",
      value: { sessionId, ...standing, principal: "ada", input: [said("before")] },
    }));
  const startAs = (named: string) =>
    createRun(options, create(CreateRunRequestSchema, { sessionId: "s", agent: named, input: [said("go")] }), by);
  const start = (previousRunId: string) =>
    createRun(options, create(CreateRunRequestSchema, { sessionId: "s", input: [said("go")], previousRunId }), by);
  return { options, add, start, startAs };
}

test("ORCH-1 what a run continues is looked at, however long it is, while its session is asked for", async () => {
  const { options, add, start } = openOptions("a");
  await add("own", "s", { agent: "a" });
  const looked = Promise.withResolvers<void>();
  const { first, read } = options.log;
  options.log.first = (...about) => first(...about).finally(() => looked.resolve());
  options.log.read = (runId, ...about) =>
    runId === "own" ? Promise.reject(new Error("too long")) : read(runId, ...about);
  const { getSession } = options.sessions;
  options.sessions.getSession = (...about) => looked.promise.then(() => getSession(...about));
  expect((await start("own")).accepted.previousRunId).toBe("own");
});

test("ORCH-1 a run that names another agent than its session has is refused, with the field", async () => {
  const { startAs } = openOptions("a");
  await expect(startAs("b")).rejects.toMatchObject({
    code: "invalid_argument",
    reason: "INVALID_REQUEST",
    fieldViolations: [{ field: "agent" }],
  });
  expect((await startAs("a")).accepted.agent).toBe("a");
  const switching = openOptions("a", { nextAgent: "b" });
  await expect(switching.startAs("a")).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
  expect((await switching.startAs("b")).accepted.agent).toBe("b");
});

test("ORCH-1 LOOP-18 a run continues only one of its own session that its agent is shown", async () => {
  const { add, start } = openOptions("a", { switchCount: 1, carry: Carry.NOTHING });
  await add("own", "s", { agent: "a", switchCount: 1 });
  await add("elsewhere", "t", { agent: "a", switchCount: 1 });
  await add("formers", "s", { agent: "b" });
  await add("earlier", "s", { agent: "a" });
  expect((await start("own")).accepted).toMatchObject({ previousRunId: "own", agent: "a", switchCount: 1 });
  for (const foreign of ["elsewhere", "formers", "earlier", "nothing"]) {
    await expect(start(foreign)).rejects.toMatchObject({ code: "not_found", reason: "RUN_NOT_FOUND" });
  }
});

test("ORCH-1 while a session is switched, a run continues what the agent will be shown that it will have", async () => {
  const way = { nextAgent: "next", state: SessionState.DRAINING };
  const messages = openOptions("former", { ...way, nextCarry: Carry.MESSAGES });
  await messages.add("formers", "s", { agent: "former" });
  const standing = { agent: "next", switchCount: 1, carry: Carry.MESSAGES };
  expect((await messages.start("formers")).accepted).toMatchObject({ previousRunId: "formers", ...standing });
  const nothing = openOptions("former", { ...way, nextCarry: Carry.NOTHING });
  await nothing.add("formers", "s", { agent: "former" });
  await expect(nothing.start("formers")).rejects.toMatchObject({ code: "not_found", reason: "RUN_NOT_FOUND" });
  const building = { nextAgent: "next", state: SessionState.BUILDING, switchCount: 1, carry: Carry.NOTHING };
  const built = openOptions("next", building);
  await built.add("nexts", "s", { agent: "next", switchCount: 1 });
  expect((await built.start("nexts")).accepted).toMatchObject({ switchCount: 1, carry: Carry.NOTHING });
});

test("a fork has the agent, the options and the point of the other run, and needs no input", async () => {
  const { options } = openOptions("a");
  const journal = createJournal(options.log, "r", systemClock);
  const accepted = {
    sessionId: "s",
    agent: "a",
    principal: "ada",
    input: [said("go")],
    options: { instructions: "Be brief." },
  };
  await journal.append(() => ({ case: "accepted", value: accepted }));
  await journal.append(() => ({ case: "ended", value: { state: RunState.FAILED } }));
  const fork = (atSequence: number, input: MessageInitShape<typeof InputItemSchema>[] = []) =>
    forkRun(options, create(ForkRunRequestSchema, { runId: "r", atSequence, input }), by);
  expect((await fork(1)).accepted).toMatchObject({
    agent: "a",
    sessionId: "new-1",
    input: [],
    options: { instructions: "Be brief." },
    fork: { runId: "r", atSequence: 1 },
  });
  await expect(fork(2)).rejects.toThrow("run r has no event 2: its last is 1");
  await expect(fork(0, [{}])).rejects.toThrow("input[0] holds nothing");
});

test("LOOP-13 a key without a session leads to one session and one run for a principal and an agent", async () => {
  const { options } = openOptions("a");
  const opened: string[] = [];
  const keyed: CreationOptions = {
    ...options,
    sessions: {
      ...options.sessions,
      createSession: async (agent, { sessionId = `new-${opened.length}`, principal }) => {
        opened.push(sessionId);
        return create(SessionSchema, { id: sessionId, agent, principal, state: SessionState.ACTIVE });
      },
    },
  };
  const start = async (idempotencyKey: string, agent = "a", principal = "ada") => {
    const request = create(CreateRunRequestSchema, { agent, idempotencyKey, input: [said("go")] });
    return (await createRun(keyed, request, { ...by, principal, caller: callerNamed(principal) })).runId;
  };
  const first = await start("k");
  expect(await start("k")).toBe(first);
  expect(new Set(opened).size).toBe(1);
  expect(opened[0]).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  const others = [
    await start("l"),
    await start("k", "b"),
    await start("k", "a", "bob"),
    await start(""),
    await start(""),
  ];
  expect(new Set([first, ...others]).size).toBe(6);
  expect(new Set(opened).size).toBe(6);
});

test.each(["closed", "switched", "gone"])(
  "LOOP-13 a creation that is repeated with its key finds its run, though the session was %s since",
  async (change) => {
    const { options } = openOptions("a");
    let now = "open";
    const sessionOf = (id: string) => {
      if (now === "gone") return refuse("not_found", `there is no session ${id}`, { reason: "SESSION_NOT_FOUND" });
      const state = now === "closed" ? SessionState.CLOSED : SessionState.ACTIVE;
      return create(SessionSchema, { id, agent: now === "switched" ? "b" : "a", principal: "ada", state });
    };
    const sessions: CreationOptions["sessions"] = {
      getSession: async (id) => sessionOf(id),
      async createSession(agent, { sessionId = "new" }) {
        if (now === "switched") refuse("already_exists", "another agent's", { reason: "SESSION_ALREADY_EXISTS" });
        return { ...sessionOf(sessionId), agent };
      },
    };
    const start = (where: { sessionId?: string; agent?: string }, caller = "ada") => {
      const request = create(CreateRunRequestSchema, { ...where, idempotencyKey: "k", input: [said("go")] });
      return createRun({ ...options, sessions }, request, { ...by, principal: caller, caller: callerNamed(caller) });
    };
    const first = [await start({ sessionId: "s" }), await start({ agent: "a" })];
    now = change;
    const again = [await start({ sessionId: "s" }), await start({ agent: "a" })];
    expect(again.map(({ runId }) => runId)).toEqual(first.map(({ runId }) => runId));
    await expect(start({ sessionId: "s" }, "bob")).rejects.toMatchObject({ reason: "PRINCIPAL_NOT_OWNER" });
  },
);

test.each([
  { functionTools: [{ name: "no name" }] },
  { functionTools: [{ name: "ask" }, { name: "ask" }] },
  { mcpServers: [{ name: "docs", url: "file:///etc/passwd" }] },
])("LOOP-12 no session is opened for a run that is refused for what it brings along: %j", async (brought) => {
  const { options } = openOptions("a");
  const opened: string[] = [];
  const createSession: CreationOptions["sessions"]["createSession"] = (agent, about) => {
    opened.push(agent);
    return options.sessions.createSession(agent, about);
  };
  const request = create(CreateRunRequestSchema, { agent: "a", input: [said("go")], options: brought });
  const creating = createRun({ ...options, sessions: { ...options.sessions, createSession } }, request, by);
  await expect(creating).rejects.toMatchObject({ code: "invalid_argument" });
  expect(opened).toEqual([]);
});

test("LOOP-16 a session is opened without a look at its queue, and its list is asked for only when tools are named", async () => {
  const { options } = openOptions("a");
  const { router, queues } = options;
  const asked: unknown[] = [];
  const looked: string[] = [];
  const creating: CreationOptions = {
    ...options,
    router: {
      ...router,
      listTools(request, ...about) {
        asked.push(request);
        return router.listTools(request, ...about);
      },
    },
    queues: {
      ...queues,
      last(sessionId) {
        looked.push(sessionId);
        return queues.last(sessionId);
      },
    },
  };
  const functionTools = [{ name: "ask" }];
  const start = (more: object) =>
    createRun(creating, create(CreateRunRequestSchema, { agent: "a", input: [said("go")], ...more }), by);
  await start({ options: { functionTools } });
  expect([asked, looked]).toEqual([[{ scope: { case: "agent", value: "a" } }], []]);
  await start({ options: { functionTools, allowedTools: { names: ["ask"] } } });
  expect(asked.slice(1)).toEqual([{ scope: { case: "session", value: { sessionId: "new-2" } } }]);
  await start({ sessionId: "s" });
  expect(looked).toEqual(["s"]);
});
