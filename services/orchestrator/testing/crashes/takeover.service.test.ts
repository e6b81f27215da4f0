import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { openProcess } from "../orchestrator-process.ts";
import { follow, followRun, openWorld, userItem, type World } from "../test-orchestrator.ts";

/** Which process answers is left to chance: a test that needs a certain holder starts the other one later. */
const gates = new Map<string, PromiseWithResolvers<unknown>>();

function gateOf(name: string): PromiseWithResolvers<unknown> {
  const gate = gates.get(name) ?? Promise.withResolvers<unknown>();
  gates.set(name, gate);
  return gate;
}

const router = createFakeRouter([{ name: "gate", answer: (args) => gateOf((args as { name: string }).name).promise }]);

let world: World;
beforeAll(async () => {
  world = await openWorld({ router });
  await world.writeScript("waiter", {
    turns: [
      { text: "I wait.", calls: [{ name: "gate", arguments: { name: "{{input}}" } }] },
      { text: "{{result.0}} at last" },
    ],
  });
  await world.writeScript("teller", {
    turns: [{ text: "one two three four five six seven eight nine ten", deltaDelayMs: 60 }],
  });
});
afterAll(() => world[Symbol.asyncDispose]());

async function start(agent: string, text: string): Promise<string> {
  const { run } = await world.runs.createRun({ agent, input: [userItem(text)] });
  return run!.id;
}

async function eventsOf(runId: string): Promise<RunEvent[]> {
  const updates = await follow(world.runs, runId);
  return updates.flatMap((update) => (update.case === "event" ? [update.value] : []));
}

const isDispatched = (runId: string, times = 1) =>
  until(() => router.requests.filter((request) => request.runId === runId).length >= times, {
    what: "the call to be dispatched",
    timeoutMs: 10_000,
  });

const ends = (events: RunEvent[]) => events.filter(({ event }) => event.case === "ended").length;

describe("when an orchestrator dies", { timeout: 60_000 }, () => {
  test("LOOP-13 by kill -9 in the middle of a call, another one finishes the run from its log", async () => {
    await using victim = await openProcess(world, "victim");
    const runId = await start("waiter", "killed");
    await isDispatched(runId);
    await using _heir = await world.openOrchestrator("heir");
    const watched = eventsOf(runId);
    victim.child.kill("SIGKILL");
    await isDispatched(runId, 2);
    gateOf("killed").resolve("saved");
    const events = await watched;
    expect(ends(events)).toBe(1);
    expect(events.map(({ event }) => event.case)).toEqual([
      "accepted",
      "claimed",
      "turnCommitted",
      "claimed",
      "callFinished",
      "turnCommitted",
      "ended",
    ]);
    expect(router.requests.filter((request) => request.runId === runId).map(({ recovering }) => recovering)).toEqual([
      false,
      true,
    ]);
    expect(router.executed.filter((name) => name === "gate")).toHaveLength(1);
    const { run } = await world.runs.getRun({ runId });
    expect(run).toMatchObject({ state: RunState.COMPLETED, outputText: "saved at last" });
  });

  test("LOOP-13 one that was frozen and thought dead writes nothing when it comes back", async () => {
    await using frozen = await openProcess(world, "frozen");
    const runId = await start("waiter", "frozen");
    await isDispatched(runId);
    frozen.child.kill("SIGSTOP");
    await using _heir = await world.openOrchestrator("heir2");
    await isDispatched(runId, 2);
    gateOf("frozen").resolve("thawed");
    const events = await eventsOf(runId);
    frozen.child.kill("SIGCONT");
    const next = await start("waiter", "afterwards");
    gateOf("afterwards").resolve("and");
    await eventsOf(next);
    expect(await eventsOf(runId)).toEqual(events);
    expect(ends(events)).toBe(1);
    const finishedAt = events.findIndex(({ event }) => event.case === "callFinished");
    const claims = events.slice(0, finishedAt).filter(({ event }) => event.case === "claimed");
    expect(claims, "what the frozen process got is not in the record").toHaveLength(2);
  });

  test("LOOP-10 in the middle of its answer, watchers are reset and end up with the text that is stored", async () => {
    await using victim = await openProcess(world, "speaker");
    const runId = await start("teller", "x");
    await using _heir = await world.openOrchestrator("heir3");
    let text = "";
    let resets = 0;
    let isKilled = false;
    for await (const update of followRun(world.runs, runId, { includeDeltas: true })) {
      if (update.case === "replaced") {
        text = update.value.text;
        resets += 1;
      }
      if (update.case === "delta" && update.value.delta.case === "text") text += update.value.delta.value;
      if (text.includes("three") && !isKilled) isKilled = victim.child.kill("SIGKILL");
    }
    expect(resets).toBeGreaterThan(0);
    expect(text).toBe("one two three four five six seven eight nine ten");
  });

  test("LOOP-13 one that stops in good order hands its runs over at once", async () => {
    const leaving = await world.openOrchestrator("leaving", { TOOLBUS_DRAIN: "1ms", TOOLBUS_TAKEOVER: "30s" });
    const runId = await start("waiter", "handed");
    await isDispatched(runId);
    await using _heir = await world.openOrchestrator("heir4", { TOOLBUS_TAKEOVER: "30s" });
    await leaving[Symbol.asyncDispose]();
    await isDispatched(runId, 2);
    gateOf("handed").resolve("over");
    expect(ends(await eventsOf(runId))).toBe(1);
  });
});

describe("when the broker dies", { timeout: 60_000 }, () => {
  test("LOOP-13 runs go on after its return, and their watchers miss nothing", async () => {
    await using _orchestrator = await world.openOrchestrator("patient");
    const runId = await start("waiter", "broker");
    await isDispatched(runId);
    await world.server.kill();
    await world.server.restart();
    gateOf("broker").resolve("back");
    const { run } = await until(
      async () => {
        const answer = await world.runs.getRun({ runId }).catch(() => undefined); // the bus is on its way back
        return answer?.run?.state === RunState.COMPLETED ? answer : undefined;
      },
      { timeoutMs: 15_000, what: "the run to end" },
    );
    expect(run).toMatchObject({ outputText: "back at last" });
    const events = await eventsOf(runId);
    expect(ends(events)).toBe(1);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
  });
});
