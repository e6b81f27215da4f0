import { afterAll, beforeAll, expect, test } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter } from "../loop/fake-router.fixture.ts";
import { follow, openWorld, userItem, type World } from "../orchestrator.fixture.ts";
import { createStreamQueues } from "../subscriptions/stream-queues.ts";
import { createStreamRetention } from "../subscriptions/stream-retention.ts";
import { createStreamRunLog } from "../subscriptions/stream-run-log.ts";
import { sweepSessions } from "./retention.ts";

let world: World;
beforeAll(async () => {
  world = await openWorld({ router: createFakeRouter([]) });
  await world.openOrchestrator("one");
  await world.writeScript("echo", { turns: [{ text: "You said {{input}}." }] });
  await world.writeScript("asker", { turns: [{ calls: [{ name: "ask", id: "who" }] }, { text: "Hello" }] });
});
afterAll(() => world[Symbol.asyncDispose]());

async function start(sessionId: string, more: object = {}): Promise<string> {
  const { run } = await world.runs.createRun({ sessionId, input: [userItem("hi")], ...more });
  return run!.id;
}

/** As if so much time had passed. */
function sweepAfter(ms: number): Promise<number> {
  const { bus } = world;
  const clock = { ...systemClock, now: () => Date.now() + ms };
  const options = { queues: createStreamQueues(bus), log: createStreamRunLog(bus), clock, keptMs: 60_000 };
  const logger = { warn: (details: object) => expect(details).toBeUndefined() };
  return sweepSessions({ ...options, retention: createStreamRetention(bus), logger }, new AbortController().signal);
}

async function subjects(): Promise<string[]> {
  const info = await world.bus.manager.streams.info("TOOLBUS_RUNS", { subjects_filter: ">" });
  return Object.keys(info.state.subjects ?? {});
}

test("LOOP-13 sessions at rest go whole after their time, others stay; a session that is gone begins anew", async () => {
  const ended = [await start("echo-old", { idempotencyKey: "k" }), await start("echo-old")];
  for (const runId of ended) await follow(world.runs, runId);
  const waiting = await start("asker-old", { options: { functionTools: [{ name: "ask" }] } });
  const isParked = async () => (await world.runs.getRun({ runId: waiting })).run?.state === RunState.REQUIRES_ACTION;
  await until(isParked, { what: "the run to wait" });

  expect(await sweepAfter(30_000)).toBe(0);
  expect((await world.runs.listRuns({ sessionId: "echo-old" })).runs).toHaveLength(2);

  expect(await sweepAfter(90_000)).toBe(1);
  expect((await world.runs.listRuns({ sessionId: "echo-old" })).runs).toEqual([]);
  expect(
    (await subjects()).filter((subject) => subject.includes("echo-old") || ended.some((id) => subject.includes(id))),
  ).toEqual([]);
  expect((await world.runs.getRun({ runId: waiting })).run?.state).toBe(RunState.REQUIRES_ACTION);

  const next = await start("echo-old", { idempotencyKey: "k" });
  await follow(world.runs, next);
  expect((await world.runs.listRuns({ sessionId: "echo-old" })).runs).toMatchObject([
    { id: next, state: RunState.COMPLETED },
  ]);
});
