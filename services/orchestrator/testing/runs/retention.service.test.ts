import { afterAll, beforeAll, expect, test } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { createResultRemoval } from "#runtime/results/store/removal.ts";
import { createResultStore } from "#runtime/results/store/store.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { until } from "#runtime/time/until.ts";
import { sweepResults } from "../../sessions/retention/result-retention.ts";
import { sweepSessions } from "../../sessions/retention/retention.ts";
import { createStreamQueues } from "../../subscriptions/streams/stream-queues.ts";
import { createStreamRetention } from "../../subscriptions/streams/stream-retention.ts";
import { createStreamRunLog } from "../../subscriptions/streams/stream-run-log.ts";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { follow, openWorld, userItem, type World } from "../test-orchestrator.ts";

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

test("LOOP-8 a stored result stays as long as its session has runs, however old it is, and goes after them; one of no run by age", async () => {
  const { bus } = world;
  const results = createResultStore(bus);
  const waiting = await start("asker-results", { options: { functionTools: [{ name: "ask" }] } });
  const isParked = async () => (await world.runs.getRun({ runId: waiting })).run?.state === RunState.REQUIRES_ACTION;
  await until(isParked, { what: "the run to wait" });
  const fromRun = await results.put("asker-results", '"of a run"');
  const ofNone = await results.put("no-run", '"of no run"');
  const sweep = (ms: number) => {
    const clock = { ...systemClock, now: () => Date.now() + ms };
    const options = { results: createResultRemoval(bus), queues: createStreamQueues(bus), clock, keptMs: 60_000 };
    return sweepResults(options, new AbortController().signal);
  };
  const kept = async () =>
    [await results.find(fromRun), await results.find(ofNone)].map((found) => found !== undefined);

  expect([await sweep(30_000), await kept()]).toEqual([0, [true, true]]);
  expect([await sweep(90_000), await kept()]).toEqual([1, [true, false]]);
  await world.runs.cancelRun({ runId: waiting });
  await follow(world.runs, waiting);
  expect([await sweep(90_000), await kept()], "an ended run, too, is read by the next").toEqual([0, [true, false]]);
  await until(async () => (await sweepAfter(90_000)) > 0, { what: "the session to be at rest" });
  expect([await sweep(90_000), await kept()]).toEqual([1, [false, false]]);
});
