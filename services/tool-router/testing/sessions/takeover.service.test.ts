import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Carry, SessionState as State } from "#gen/toolbus/session/v1/session_pb.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { until } from "#runtime/time/until.ts";
import { decodeSession, encodeSession, type SessionRecord } from "../../sessions/session-record.ts";
import { openSwitcher, type Switcher } from "../fakes/switcher.ts";

const codec = { encode: encodeSession, decode: decodeSession };
const sessionsOf = (bus: Bus) => createBucket(bus, { bucket: "toolbus_sessions", prefix: "", codec });

describe("a switch whose router was killed, on the bus", () => {
  let suite: Switcher;
  beforeAll(async () => {
    suite = await openSwitcher();
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  /** Leaves a session as a router leaves it that is killed after it has written this. */
  async function leftIn(state: State, more: Partial<SessionRecord>): Promise<string> {
    const sessionId = await suite.openSession("red");
    await suite.clients.call({ sessionId, name: "mine" });
    // recent-sessions-1 of recent-sessions.ts: a router believes for a second what it has read. A real switch drains for longer than that
    const calledAtMs = performance.now();
    await until(() => performance.now() - calledAtMs > 1_000);
    const stored = sessionsOf(suite.bus);
    const { value: session, revision } = (await stored.read(sessionId))!;
    const drainUntil = timestampFromMs(Date.now());
    const left = {
      ...session,
      state,
      holder: "killed-router",
      drainExpireTime: drainUntil,
      ...more,
    };
    expect(await stored.replace(sessionId, left, revision)).toBeDefined();
    return sessionId;
  }

  test.for([
    [State.DRAINING, {}],
    [State.TEARING_DOWN, {}],
    [State.BUILDING, { agent: "blue", contextRevision: 1_000, switchCount: 1, carry: Carry.NOTHING }],
  ] as const)(
    "ORCH-1 in state %i it is finished by another router, and the old agent is gone",
    async ([state, more]) => {
      const sessionId = await leftIn(state, { nextAgent: "blue", nextCarry: Carry.NOTHING, ...more });
      const waiting = suite.clients.call({ sessionId, name: "mine" }); // a session never hangs: who comes meanwhile is served
      expect((await waiting).output).toMatchObject({ agent: "blue" });
      const { session } = await suite.clients.sessions.getSession({ sessionId });
      expect(session).toMatchObject({ agent: "blue", state: State.ACTIVE, nextAgent: "" });
      expect(session).toMatchObject({ switchCount: 1, carry: Carry.NOTHING, nextCarry: Carry.UNSPECIFIED });
      const isReleased = suite.mcp.released.some((scope) => scope.sessionId === sessionId && scope.agent === "red");
      expect(isReleased).toBe(state !== State.BUILDING);
      expect((await suite.clients.call({ sessionId, name: "red_files__whose" })).isError).toBe(true);
    },
  );

  test.for([State.DRAINING, State.TEARING_DOWN])("ORCH-1 a closing in state %i is finished likewise", async (state) => {
    const sessionId = await leftIn(state, { nextAgent: "" });
    await suite.reaches(sessionId, State.CLOSED);
    await until(() => suite.mcp.released.some((scope) => scope.sessionId === sessionId));
    await expect(suite.clients.call({ sessionId, name: "echo" })).rejects.toThrow(/is closed/);
  });

  test("ORCH-1 a switch to an agent that is gone by then is taken back before anything is taken down", async () => {
    const sessionId = await leftIn(State.DRAINING, { nextAgent: "deleted" });
    expect((await suite.clients.call({ sessionId, name: "mine" })).output).toMatchObject({ agent: "red" });
    const { session } = await suite.clients.sessions.getSession({ sessionId });
    expect(session).toMatchObject({ agent: "red", state: State.ACTIVE });
    expect(suite.mcp.released.filter((scope) => scope.sessionId === sessionId)).toEqual([]);
  });

  test("ORCH-1 a router that comes when all others are gone finds the sessions that are under way", async () => {
    const sessionId = await suite.openSession("red");
    for (const router of suite.routers) await router[Symbol.asyncDispose]();
    const stored = sessionsOf(suite.bus);
    const { value: session, revision } = (await stored.read(sessionId))!;
    const left = { ...session, state: State.TEARING_DOWN, holder: "killed", nextAgent: "blue" };
    expect(await stored.replace(sessionId, left, revision)).toBeDefined();
    suite.use(await suite.startRouter("c"));
    await suite.reaches(sessionId, State.ACTIVE);
    expect((await suite.clients.call({ sessionId, name: "mine" })).output).toMatchObject({ agent: "blue" });
  });
});
