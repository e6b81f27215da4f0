import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunStatus } from "#gen/toolbus/run/v1/run_pb.ts";
import { until } from "#runtime/time/until.ts";
import { createFakeRouter } from "./loop/fake-router.ts";
import { follow, openWorld, userItem, type World } from "./orchestrator-world.ts";

const router = createFakeRouter([
  { name: "double", answer: (args) => ({ value: (args as { value: number }).value * 2 }) },
]);
let world: World;

beforeAll(async () => {
  world = await openWorld({ router });
  await world.openOrchestrator("one");
  await world.writeScript("doubler", {
    turns: [
      { text: "I double.", calls: [{ name: "double", arguments: { value: 21 } }] },
      { text: "You said {{input}}; it is {{result.0.value}}." },
    ],
  });
});
afterAll(() => world[Symbol.asyncDispose]());

describe("a run", () => {
  test("LOOP-1 goes from the input over a call to the final answer", async () => {
    const { run } = await world.runs.createRun({ agent: "doubler", input: [userItem("hello")] });
    const updates = await follow(world.runs, run!.id);
    const events = updates.flatMap((update) => (update.case === "event" ? [update.value] : []));
    expect(events.map(({ event }) => event.case)).toEqual([
      "accepted",
      "claimed",
      "turnCommitted",
      "callFinished",
      "turnCommitted",
      "ended",
    ]);
    const { run: ended } = await world.runs.getRun({ runId: run!.id });
    expect(ended).toMatchObject({ status: RunStatus.COMPLETED, reason: "final_answer", turns: 2 });
    expect(ended?.outputText).toBe("You said hello; it is 42.");
    await until(() => true);
  });
});
