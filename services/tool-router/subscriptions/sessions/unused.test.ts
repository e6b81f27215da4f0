import { expect, test } from "vitest";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { filledPart, makeRoom } from "#runtime/bus/buckets/room.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import { type SessionRecordInit, sessionRecord } from "../../sessions/session-record.ts";
import { sessionPlace, unusedSessions } from "./unused.ts";

const dayMs = 24 * 60 * 60_000;

test("SEC-5 when room gets short, sessions leave of which no run stands and for which nothing waits, and no others", async () => {
  await using bus = await openTestBus();
  const stream = "KV_toolbus_sessions";
  const { config } = await bus.manager.streams.info(stream);
  await bus.manager.streams.update(stream, { ...config, max_bytes: 64 * 1_024 });
  const sessions = createBucket(bus, sessionPlace);
  const add = (id: string, more: SessionRecordInit = {}) =>
    sessions.create(id, sessionRecord({ id, agent: "a", state: SessionState.ACTIVE, ...more }));
  await add("awaited");
  await add("attached");
  await add("busy");
  await add("busy-and-closed", { state: SessionState.CLOSED });
  await add("switching", { state: SessionState.DRAINING, nextAgent: "b" });
  const fill = async () => {
    for (let n = 0; ; n += 1) await add(`s${n}`, n % 2 === 0 ? { state: SessionState.CLOSED } : {});
  };
  await expect(fill()).rejects.toMatchObject({ reason: "STORE_FULL" });

  const forgotten: string[] = [];
  const callers: string[] = [];
  const roomAfter = (ms: number) => {
    const parts = {
      hasRuns: async (id: string) => id.startsWith("busy"),
      forgetSession: async ({ sessionId }: { sessionId: string }) =>
        sessionId !== "awaited" && forgotten.push(sessionId) > 0,
      forgetCaller: async ({ id }: { id: string }) => id !== "attached" && callers.push(id) > 0,
    };
    const clock = { ...systemClock, now: () => Date.now() + ms };
    return makeRoom(bus, unusedSessions(clock, parts), new AbortController().signal);
  };
  expect(await roomAfter(dayMs / 2), "those of the last day").toBe(0);
  expect(await roomAfter(2 * dayMs)).toBeGreaterThan(20);
  expect(await filledPart(bus, sessionPlace)).toBeLessThan(0.75);
  for (const id of ["awaited", "attached", "busy", "busy-and-closed", "switching"])
    expect(await sessions.read(id)).toBeDefined();
  expect(await sessions.read("s0")).toBeUndefined();
  expect(forgotten).toContain("s0");
  expect(callers, "those that were closed have let go of theirs").toEqual(
    forgotten.filter((id) => /[13579]$/.test(id)),
  );
  expect(await add("next")).toBeDefined();
  expect(await add("s0", { agent: "b" }), "its id is free again").toBeDefined();
});

test("SEC-5 a sweep asks for so many sessions, and the next one goes on behind them", async () => {
  await using bus = await openTestBus();
  const stream = "KV_toolbus_sessions";
  const { config } = await bus.manager.streams.info(stream);
  await bus.manager.streams.update(stream, { ...config, max_bytes: 8 * 1_024 });
  const sessions = createBucket(bus, sessionPlace);
  const fill = async () => {
    for (let n = 0; ; n += 1) await sessions.create(`s${n}`, sessionRecord({ id: `s${n}`, agent: "a" }));
  };
  await expect(fill()).rejects.toMatchObject({ reason: "STORE_FULL" });
  const asked: string[] = [];
  const mayGo = (_: unknown, key: string) => asked.push(key) < 0;
  const progress = { fromSequence: 1 };
  const options = { place: sessionPlace, keptMs: -dayMs, mayGo, mostAsked: 3, clock: systemClock };
  for (let sweep = 0; sweep < 2; sweep += 1) await makeRoom(bus, options, new AbortController().signal, progress);
  expect(asked).toEqual(["s0", "s1", "s2", "s3", "s4", "s5"]);
});
