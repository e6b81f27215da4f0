import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { SessionState as State } from "#gen/toolbus/session/v1/session_pb.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { createChanges } from "#runtime/collections/changes.ts";
import { systemClock as clock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { SessionChanges } from "../session-changes.ts";
import { type SessionRecord, sessionRecord } from "../session-record.ts";
import { Sessions } from "../sessions.ts";
import { Switching } from "./switching.ts";
import { watchSession } from "./watch.ts";

/** Routers on one store; a test says how long each waits for the others to leave, and sees what each did. */
async function openRouters() {
  const news = new SessionChanges();
  const states: SessionRecord[] = [];
  const bucket = createMemoryBucket<SessionRecord>({
    onWrite: (stored) => {
      states.push(stored.value);
      news.publish(stored);
    },
  });
  let revisions = 10;
  const agents = new Map(["red", "blue"].map((name) => [name, create(AgentSchema, { name })]));
  const catalogue = {
    caughtUp: async () => {},
    requireAgent: async () => {},
    agent: (name: string) => (agents.has(name) ? { agent: agents.get(name), revision: 1 } : undefined),
    findings: () => ({ faults: [], warnings: [] }),
    get lastAgentRevision() {
      revisions += 1;
      return revisions;
    },
  } as unknown as Catalogue;
  const sessions = new Sessions({
    bucket,
    principals: { read: async () => new Map() },
    catalogue,
    clock,
    changes: news,
  });
  const did: string[] = [];
  const stopping = new AbortController();
  await bucket.create("s", sessionRecord({ id: "s", agent: "red", state: State.ACTIVE }));
  const router = (self: string, allLeft: () => Promise<boolean> = async () => true) =>
    new Switching({
      ...{ sessions, catalogue, self, drainMs: 5_000, clock, routers: { allDrained: allLeft } },
      release: async ({ agent }) => String(did.push(`${self} releases ${agent}`)),
      build: async ({ agent }) => String(did.push(`${self} builds ${agent}`)),
      cancelRuns: async () => {},
      wake: async () => {},
      leaveSpace: async (_, agent) => void did.push(`${self} takes ${agent} out of its space`),
      audit: () => {},
      logger: { warn: () => {} },
      signal: stopping.signal,
    });
  return { bucket, sessions, states, did, agents, router };
}

test("ORCH-1 a holder that was frozen and replaced does nothing more when it goes on", async () => {
  const { bucket, states, did, router } = await openRouters();
  const frozen = Promise.withResolvers<boolean>();
  const [first, second] = [router("first", () => frozen.promise), router("second")];
  const switching = first.switchAgent({ sessionId: "s", agent: "blue" });
  await until(() => states.at(-1)?.state === State.DRAINING);
  await second.takeOver((await bucket.read("s"))!);
  expect((await switching).agent).toBe("blue"); // who asked is told, whoever did it
  frozen.resolve(true);
  await first.idle();
  expect(did).toEqual(["second releases red", "second builds blue"]);
  expect(states.map(({ state, holder }) => [state, holder])).toEqual([
    [State.ACTIVE, ""],
    [State.DRAINING, "first"],
    [State.DRAINING, "second"],
    [State.TEARING_DOWN, "second"],
    [State.BUILDING, "second"],
    [State.ACTIVE, ""],
  ]);
});

test("ORCH-1 an agent that is taken away while the session drains is not switched to, and nothing is taken down", async () => {
  const { agents, did, sessions, router } = await openRouters();
  const left = Promise.withResolvers<boolean>();
  const switching = router("first", () => left.promise).switchAgent({ sessionId: "s", agent: "blue" });
  agents.delete("blue");
  left.resolve(true);
  await expect(switching).rejects.toThrow(/there is no agent "blue"/);
  expect(did).toEqual([]);
  expect(await sessions.get("s")).toMatchObject({ agent: "red", state: State.ACTIVE, nextAgent: "" });
});

test("ORCH-1 with each switch the revision grows beyond all that was told before, so that older decisions are known", async () => {
  const { sessions, router } = await openRouters();
  const switching = router("first");
  let told = (await sessions.get("s")).contextRevision;
  for (const agent of ["blue", "red", "blue", "red"]) {
    const before = told;
    told = (await switching.switchAgent({ sessionId: "s", agent })).contextRevision;
    expect(told).toBeGreaterThan(before);
    await expect(sessions.active("s", before)).rejects.toThrow(/what its former agent decided is not carried out/);
    await expect(sessions.active("s", told)).resolves.toMatchObject({ session: { agent } });
  }
});

test("ORCH-1 a closing waits for the switch that is under way", async () => {
  const { states, sessions, router } = await openRouters();
  const left = Promise.withResolvers<boolean>();
  const first = router("first", () => left.promise);
  const switching = first.switchAgent({ sessionId: "s", agent: "blue" });
  await until(() => states.at(-1)?.state === State.DRAINING);
  const closing = router("second").close({ sessionId: "s" });
  left.resolve(true);
  await switching.catch(() => {}); // it may be told that the session is closed by then
  expect((await closing).state).toBe(State.CLOSED);
  expect(await sessions.get("s")).toMatchObject({ agent: "blue", state: State.CLOSED, holder: "" });
});

test("ORCH-1 no switch is begun for who has gone meanwhile", async () => {
  const { sessions, router } = await openRouters();
  const gone = AbortSignal.abort(new Error("gone"));
  await expect(router("first").switchAgent({ sessionId: "s", agent: "blue" }, gone)).rejects.toThrow("gone");
  expect(await sessions.get("s")).toMatchObject({ agent: "red", state: State.ACTIVE });
});

test("ORCH-1 a switch that expects a revision is made once: repeated it is answered, and refused when the session has gone on", async () => {
  const { sessions, router } = await openRouters();
  const [first, second] = [router("first"), router("second")];
  const { contextRevision } = await sessions.get("s");
  const toBlue = { sessionId: "s", agent: "blue", expectedContextRevision: contextRevision };
  const made = await first.switchAgent(toBlue);
  expect(await second.switchAgent(toBlue)).toEqual(made);
  const back = { sessionId: "s", agent: "red", expectedContextRevision: made.contextRevision };
  const { contextRevision: standing } = await second.switchAgent(back);
  await expect(first.switchAgent(toBlue)).rejects.toMatchObject({
    code: "aborted",
    reason: "SWITCH_OUTDATED",
    metadata: { session_id: "s", agent: "red", context_revision: String(standing) },
  });
  await expect(first.switchAgent({ ...toBlue, expectedContextRevision: standing + 1 })).rejects.toThrow(/is not made/); // told of none
  expect(await sessions.get("s")).toMatchObject({ agent: "red", state: State.ACTIVE, contextRevision: standing });
});

test("ORCH-1 a repeated switch that is still under way ends with it; one to another agent is told of it", async () => {
  const { did, sessions, states, router } = await openRouters();
  const left = Promise.withResolvers<boolean>();
  const { contextRevision } = await sessions.get("s");
  const toBlue = { sessionId: "s", agent: "blue", expectedContextRevision: contextRevision };
  const switching = router("first", () => left.promise).switchAgent(toBlue);
  await until(() => states.at(-1)?.state === State.DRAINING);
  const repeated = router("second").switchAgent(toBlue);
  await expect(router("second").switchAgent({ ...toBlue, agent: "red" })).rejects.toThrow(
    /is being switched to agent "blue"/,
  );
  left.resolve(true);
  expect(await repeated).toEqual(await switching);
  expect(did).toEqual(["first releases red", "first builds blue"]);
});

test("ORCH-1 a session whose agent is gone from the catalogue can be switched from the revision that was told of it", async () => {
  const { agents, sessions, router } = await openRouters();
  const { contextRevision } = await sessions.get("s");
  agents.delete("red");
  const { agent } = await router("first").switchAgent({
    sessionId: "s",
    agent: "blue",
    expectedContextRevision: contextRevision,
  });
  expect(agent).toBe("blue");
});

async function openWatched() {
  const changes = new SessionChanges();
  const bucket = createMemoryBucket<SessionRecord>({ onWrite: (stored) => changes.publish(stored) });
  const agent = create(AgentSchema, { name: "red" });
  const agentChanges = createChanges();
  const loaded = { revision: 1, notify: agentChanges.tell };
  const catalogue: Partial<Catalogue> = {
    agent: () => ({ agent, revision: loaded.revision }),
    agentChanges,
  };
  const sessions = new Sessions({
    ...{ bucket, clock, changes, catalogue: catalogue as Catalogue },
    principals: { read: async () => new Map() },
  });
  const open = (principal: string) =>
    bucket.create("s", sessionRecord({ id: "s", agent: "red", principal, state: State.ACTIVE }));
  await open("alice");
  const ends = new AbortController();
  const watch = watchSession({ sessions, changes, catalogue: catalogue as Catalogue }, "s", ends.signal);
  return { bucket, sessions, loaded, open, ends, watch };
}

test("ORCH-1 a watch tells of an agent that is loaded afresh while its reader takes another change", async () => {
  const { sessions, loaded, ends, watch } = await openWatched();
  const nextRevision = async () => (await watch.next()).value?.contextRevision;
  expect(await nextRevision()).toBe(1);
  const told = nextRevision();
  await sessions.setLogLevel("s", 1);
  expect(await told).toBe(1);
  loaded.revision = 2; // the reader has the change above, and has not asked for the next
  loaded.notify();
  const late = setTimeout(() => ends.abort(new Error("it is not told")), 1_000);
  expect(await nextRevision()).toBe(2);
  clearTimeout(late);
});

test("SEC-2 a watch tells nothing of the session that another principal opens under the id of one that was forgotten", async () => {
  const { bucket, open, watch } = await openWatched();
  expect((await watch.next()).value?.principal).toBe("alice");
  const next = watch.next();
  await bucket.remove("s");
  await open("bob");
  await expect(next).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
});
