import { expect, onTestFinished, test, vi } from "vitest";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { evictValues, filledPart } from "#runtime/bus/buckets/bucket-eviction.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { openTestBus } from "../../../../test/harness/bus.ts";
import type { ProviderClient } from "../../sessions/offers/provider-client.ts";
import { type SessionRecordInit, sessionRecord } from "../../sessions/session-record.ts";
import { createForgetCaller, sessionPlace, sessionRetention } from "./session-retention.ts";

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
    return evictValues(bus, sessionRetention(clock, parts), new AbortController().signal);
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
  for (let sweep = 0; sweep < 2; sweep += 1) await evictValues(bus, options, new AbortController().signal, progress);
  expect(asked).toEqual(["s0", "s1", "s2", "s3", "s4", "s5"]);
});

test("SEC-2 a relay of callers that does not answer is waited for no longer than its time, and is told of the session again", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const told: unknown[] = [];
  const provider = {
    releaseScope: (scope: unknown, { signal, ...more }: { signal: AbortSignal; forgetsSession?: boolean }) => {
      told.push({ scope, ...more });
      if (told.length > 1) return Promise.resolve(1);
      return new Promise<number>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    },
  };
  const forgetCaller = createForgetCaller(() => provider as unknown as ProviderClient);
  const session = sessionRecord({ id: "daily", agent: "a", principal: "alice" });
  const forgotten = forgetCaller(session);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await forgotten).toBe(false);
  expect(await forgetCaller(session)).toBe(true);
  const scope = { sessionId: "daily", agent: "a", principal: "alice" };
  expect(told[1]).toMatchObject({ scope, forgetsSession: true });
}, 10_000);
