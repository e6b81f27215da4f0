import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { WatchRunResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { openProcess } from "../orchestrator-process.ts";
import { followRun, openWorld, userItem, type World } from "../test-orchestrator.ts";

const story = Array.from({ length: 60 }, (_, index) => `word${index}`).join(" ");

let world: World;
beforeAll(async () => {
  world = await openWorld({ router: createFakeRouter([]) });
  await world.writeScript("narrator", { turns: [{ text: story, deltaDelayMs: 40 }] });
});
afterAll(() => world[Symbol.asyncDispose]());

async function start(): Promise<string> {
  return (await world.runs.createRun({ agent: "narrator", input: [userItem("x")] })).run!.id;
}

/** Whether so many deltas are stored, or all of the turn is. */
async function hasStored(runId: string, deltas: number): Promise<boolean> {
  const { draft, turnCount: turns = 0 } = (await world.runs.getRun({ runId })).run ?? {};
  return turns > 0 || (draft?.deltaCount ?? 0) >= deltas;
}

const draftOf = async (runId: string) => (await world.runs.getRun({ runId })).run?.draft;

/** The text that a client has after each update: what it was told since the last reset. Refuses what does not join it. */
function createScreen() {
  let text = "";
  let next: { attempt: number; n: number } | undefined;
  return {
    show(update: WatchRunResponse["update"]): void {
      if (update.case === "replaced") {
        text = update.value.text;
        next = { attempt: update.value.attempt, n: update.value.deltaCount };
      }
      if (update.case !== "delta") return;
      const { attempt, index: n, delta } = update.value;
      expect({ attempt, n }).toEqual(next ?? { attempt, n: 0 });
      next = { attempt, n: n + 1 };
      if (delta.case === "text") text += delta.value;
    },
    get text() {
      return text;
    },
  };
}

describe("who joins a run in mid-turn", { timeout: 60_000 }, () => {
  test("LOOP-10 gets the text that is stored while nobody works on the run, from any sequence, and is reset by the heir", async () => {
    const slowTakeover = { TOOLBUS_TAKEOVER: "6s", TOOLBUS_CHECKPOINT: "150ms" };
    await using speaker = await openProcess(world, "speaker", slowTakeover);
    const runId = await start();
    await until(async () => ((await draftOf(runId))?.deltaCount ?? 0) > 4, { what: "a draft", timeoutMs: 10_000 });
    speaker.child.kill("SIGKILL");
    await using _heir = await world.openOrchestrator("heir", slowTakeover);
    const draft = (await draftOf(runId))!;
    expect(story.startsWith(draft.text)).toBe(true);
    const { lastSequence } = (await world.runs.getRun({ runId })).run!;
    const screens = await Promise.all(
      [0, 1, lastSequence, lastSequence + 1].map(async (fromSequence) => {
        const screen = createScreen();
        const texts: string[] = [];
        for await (const update of followRun(world.runs, runId, { fromSequence, includeDeltas: true })) {
          screen.show(update);
          if (update.case === "replaced") texts.push(update.value.text);
        }
        return { first: texts[0], text: screen.text, resets: texts.length };
      }),
    );
    for (const { first, text, resets } of screens) {
      expect(first).toBe(draft.text);
      expect(resets).toBeGreaterThan(1);
      expect(text).toBe(story);
    }
    const { run } = await world.runs.getRun({ runId });
    expect(run).toMatchObject({ outputText: story, turnCount: 1 });
    expect(run!.draft).toBeUndefined();
  });

  test("LOOP-10 gets the text so far on any replica, and what follows joins without gap or repetition", async () => {
    const often = { TOOLBUS_CHECKPOINT: "100ms" };
    await using _one = await world.openOrchestrator("one", often);
    await using _two = await world.openOrchestrator("two", often);
    const runId = await start();
    const texts = await Promise.all(
      [0, 5, 15, 30, 45].map(async (afterDeltas) => {
        await until(() => hasStored(runId, afterDeltas), { timeoutMs: 15_000 });
        const screen = createScreen();
        for await (const update of followRun(world.runs, runId, { includeDeltas: true })) screen.show(update);
        return screen.text;
      }),
    );
    expect(texts).toEqual(texts.map(() => story));
  });
});
