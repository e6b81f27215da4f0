import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { SessionState as State } from "#gen/toolbus/session/v1/session_pb.ts";
import { until } from "#runtime/time/until.ts";
import { ended } from "../fakes/fake-provider.ts";
import { openSwitcher, type Switcher } from "../fakes/switcher.ts";

describe("switching a session's agent, on the bus", () => {
  let suite: Switcher;
  beforeAll(async () => {
    suite = await openSwitcher();
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  test("ORCH-1 a session comes through its states in order, and has the other agent's tools and nothing else", async () => {
    const sessionId = await suite.openSession("red");
    const { sessions, router } = suite.clients;
    const before = await router.listTools({ scope: { case: "session", value: { sessionId } } });
    const watch = suite.watch(sessionId);
    await until(() => watch.states.length === 1);
    const { session } = await sessions.switchAgent({ sessionId, agent: "blue" });
    expect(session).toMatchObject({ agent: "blue", state: State.ACTIVE, nextAgent: "" });
    await until(() => watch.states.at(-1)?.agent === "blue" && watch.states.at(-1)?.state === State.ACTIVE);
    expect(watch.states.map(({ state, agent }) => [state, agent])).toEqual([
      [State.ACTIVE, "red"],
      [State.DRAINING, "red"],
      [State.TEARING_DOWN, "red"],
      [State.BUILDING, "blue"],
      [State.ACTIVE, "blue"],
    ]);
    const after = await router.listTools({ scope: { case: "session", value: { sessionId } } });
    expect(after.agent).toBe("blue");
    expect(after.contextRevision).toBeGreaterThan(before.contextRevision);
    expect(after.tools.map(({ reference }) => reference)).toEqual(["@blue_files/whose", "echo"]);
    for (const { modelName, reference } of before.tools.filter((tool) => tool.reference !== "echo")) {
      for (const name of [modelName, reference, "mine"]) {
        for (let attempt = 0; attempt < 4; attempt++) {
          const { output, isError } = await suite.clients.call({ sessionId, name });
          const isOfBlue = name === "mine";
          expect(isError).toBe(!isOfBlue);
          if (isOfBlue) expect(output).toMatchObject({ agent: "blue", source: "blue_files" });
        }
      }
    }
    await sessions.closeSession({ sessionId });
    await watch.ended;
    expect(watch.states.slice(5).map(({ state }) => state)).toEqual([State.DRAINING, State.TEARING_DOWN, State.CLOSED]);
    expect(suite.mcp.released).toEqual([
      { sessionId, agent: "red" },
      { sessionId, agent: "blue" },
    ]);
    const kinds = [AuditKind.BUILT, AuditKind.SWITCHED, AuditKind.TORN_DOWN];
    const events = await until(async () => {
      const { events } = await suite.clients.audit.listAuditEvents({ filter: { sessionId, kinds } });
      return events.length === 4 && events;
    });
    expect(events.map(({ kind, agent }) => [kind, agent]).reverse()).toEqual([
      [AuditKind.TORN_DOWN, "red"],
      [AuditKind.BUILT, "blue"],
      [AuditKind.SWITCHED, "blue"],
      [AuditKind.TORN_DOWN, "blue"],
    ]);
  });

  test("TOOL-13 the agent of a session that is closed leaves its space; one that is switched stays in its own", async () => {
    const sessionId = await suite.openSession("red");
    const { activeSpaces } = suite.spaces;
    for (const agent of ["red", "blue"]) activeSpaces.set(`${sessionId} ${agent}`, "room");
    await suite.clients.sessions.switchAgent({ sessionId, agent: "blue" });
    expect([...activeSpaces.keys()]).toEqual([`${sessionId} red`, `${sessionId} blue`]);
    await suite.clients.sessions.closeSession({ sessionId });
    expect([...activeSpaces.keys()]).toEqual([`${sessionId} red`]);
    activeSpaces.clear();
  });

  test("ORCH-1 an agent that does not exist or cannot be loaded is refused before anything is taken down", async () => {
    const sessionId = await suite.openSession("red");
    const { sessions } = suite.clients;
    await expect(sessions.switchAgent({ sessionId, agent: "nobody" })).rejects.toThrow(/there is no agent "nobody"/);
    await suite.breakAgent("broken");
    await expect(sessions.switchAgent({ sessionId, agent: "broken" })).rejects.toThrow(
      /agent "broken" cannot be loaded: .*there is no provider "gone"/,
    );
    expect((await sessions.getSession({ sessionId })).session).toMatchObject({ agent: "red", state: State.ACTIVE });
    expect(suite.mcp.released.filter((scope) => scope.sessionId === sessionId)).toEqual([]);
    expect((await sessions.switchAgent({ sessionId, agent: "red" })).session?.agent).toBe("red");
    await sessions.closeSession({ sessionId });
    await expect(sessions.switchAgent({ sessionId, agent: "blue" })).rejects.toThrow(/is closed/);
    await expect(sessions.switchAgent({ sessionId: "none", agent: "blue" })).rejects.toThrow(/there is no session/);
  });

  test("ORCH-1 a call in flight ends in its time, and the switch waits for it; what comes meanwhile is the next agent's", async () => {
    const sessionId = await suite.openSession("red");
    const before = await suite.clients.router.listTools({ scope: { case: "session", value: { sessionId } } });
    const release = Promise.withResolvers<void>();
    suite.hold("held", release.promise);
    const calling = suite.clients.call({ sessionId, name: "mine", callId: "held" });
    await until(() => suite.mcp.calls.some(({ callId }) => callId === "held"));
    const switching = suite.clients.sessions.switchAgent({
      sessionId,
      agent: "blue",
      drainTimeout: durationFromMs(60_000),
    });
    await suite.reaches(sessionId, State.DRAINING);
    const decided = { sessionId, name: "mine", contextRevision: before.contextRevision };
    await expect(suite.clients.call(decided)).rejects.toThrow(/is being switched to agent "blue"/);
    const unbound = suite.clients.call({ sessionId, name: "mine" });
    const other = suite.clients.sessions.switchAgent({ sessionId, agent: "green" });
    await expect(other).rejects.toThrow(/is being switched to agent "blue"/);
    release.resolve();
    expect((await calling).output).toMatchObject({ agent: "red" });
    expect((await switching).session?.agent).toBe("blue");
    expect((await unbound).output).toMatchObject({ agent: "blue" });
    await expect(suite.clients.call({ ...decided, callId: "late" })).rejects.toThrow(/has agent "blue" now/);
    const refused = await until(async () => {
      const filter = { sessionId, kinds: [AuditKind.BLOCKED] };
      const { events } = await suite.clients.audit.listAuditEvents({ filter });
      return events.find(({ callId }) => callId === "late");
    });
    expect(refused).toMatchObject({ agent: "blue", tool: "mine", rule: "decided by a former agent" });
    const { tools } = await suite.clients.router.listTools({ scope: { case: "session", value: { sessionId } } });
    expect(tools.map(({ reference }) => reference)).toContain("@blue_files/whose");
  });

  test("ORCH-1 calls that take too long are canceled at their provider, told why, and are an audit event", async () => {
    const sessionId = await suite.openSession("red");
    suite.mcp.answer = async function* (_, signal) {
      yield { event: { case: "log", value: { message: "working" } } };
      await ended(signal);
    };
    const calling = suite.clients.call({ sessionId, name: "mine", callId: "slow" });
    await until(() => suite.mcp.calls.some(({ callId }) => callId === "slow"));
    await suite.clients.sessions.switchAgent({ sessionId, agent: "blue", drainTimeout: durationFromMs(50) });
    const { output, isError } = await calling;
    expect(isError).toBe(true);
    expect(JSON.stringify(output)).toMatch(/outcome_unknown: .*is being switched to agent .*blue.*took too long/);
    await until(() => suite.mcp.canceled.includes("slow"));
    suite.answerWhose();
    const filter = { sessionId, kinds: [AuditKind.SWITCH_TIMED_OUT] };
    const events = await until(async () => {
      const listed = await suite.clients.audit.listAuditEvents({ filter });
      return listed.events.length > 0 ? listed.events : undefined;
    });
    expect(events).toMatchObject([{ agent: "red", callId: "slow" }]);
  });

  test("ORCH-1 of many concurrent switches one wins, and the others are told", async () => {
    const sessionId = await suite.openSession("red");
    const release = Promise.withResolvers<void>();
    suite.hold("first", release.promise);
    const calling = suite.clients.call({ sessionId, name: "mine", callId: "first" });
    await until(() => suite.mcp.calls.some(({ callId }) => callId === "first"));
    const agents = ["blue", "green", "blue", "green", "blue", "green"];
    const attempts = agents.map((agent) =>
      suite.clients.sessions.switchAgent({ sessionId, agent, drainTimeout: durationFromMs(60_000) }).then(
        ({ session }) => session?.agent,
        (error: unknown) => String(error),
      ),
    );
    let told = 0;
    for (const attempt of attempts) void attempt.then(() => told++);
    await until(() => told === agents.length - 1);
    release.resolve();
    await calling;
    const outcomes = await Promise.all(attempts);
    const winners = outcomes.filter((outcome) => outcome === "blue" || outcome === "green");
    expect(winners).toHaveLength(1);
    for (const outcome of outcomes.filter((one) => one !== winners[0])) {
      expect(outcome).toContain(`is being switched to agent "${winners[0]}"`);
    }
    expect((await suite.clients.sessions.getSession({ sessionId })).session?.agent).toBe(winners[0]);
  });

  test("ORCH-1 parked runs of the old agent are canceled, running ones are not; a closed session's all are", async () => {
    const sessionId = await suite.openSession("red");
    const run = (id: string, agent: string, status: RunState) =>
      suite.runs.runs.push({ id: `${sessionId}-${id}`, sessionId, agent, state: status });
    run("parked", "red", RunState.REQUIRES_ACTION);
    run("running", "red", RunState.IN_PROGRESS);
    run("done", "red", RunState.COMPLETED);
    run("next", "blue", RunState.REQUIRES_ACTION);
    suite.runs.runs.push({ id: "other", sessionId: "other", agent: "red", state: RunState.REQUIRES_ACTION });
    const canceled = () => suite.runs.canceled.filter(({ runId }) => runId.startsWith(`${sessionId}-`));
    await suite.clients.sessions.switchAgent({ sessionId, agent: "blue" });
    expect(canceled()).toEqual([{ runId: `${sessionId}-parked`, reason: "agent_switched" }]);
    await suite.clients.sessions.closeSession({ sessionId });
    expect(
      canceled()
        .map(({ runId, reason }) => [runId.slice(sessionId.length + 1), reason])
        .slice(1)
        .sort(),
    ).toEqual([
      ["next", "session_closed"],
      ["running", "session_closed"],
    ]);
    expect(suite.runs.canceled.map(({ runId }) => runId)).not.toContain("other");
  });

  test("ORCH-1 visible tools, shown calls and inbox events name the agent that is active", async () => {
    const sessionId = await suite.openSession("red");
    await suite.clients.sessions.switchAgent({ sessionId, agent: "green" });
    suite.spaces.activeSpaces.set(`${sessionId} red`, "room");
    expect(JSON.stringify((await suite.clients.call({ sessionId, name: "ask" })).output)).toMatch(/not in a space/);
    suite.spaces.activeSpaces.set(`${sessionId} green`, "den");
    const asking = suite.clients.call({ sessionId, name: "ask", callId: "shown" });
    await until(() => suite.spaces.messages.some(({ callId }) => callId === "shown"));
    await suite.clients.calls.submitToolResult({ callId: "shown", outcome: { case: "resultJson", value: "1" } });
    expect((await asking).output).toBe(1);
    const isOfRed = (scope?: { sessionId: string; agent: string }) =>
      scope?.sessionId === sessionId && scope.agent === "red";
    expect(suite.mcp.calls.filter(({ scope }) => isOfRed(scope))).toEqual([]);
  });
});
