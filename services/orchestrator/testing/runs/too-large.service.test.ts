import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunEndReason, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { openScriptedWorld, type ScriptedWorld } from "../scripted-world.ts";

let world: ScriptedWorld;
beforeAll(async () => {
  world = await openScriptedWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

describe("what is too large for a log", () => {
  const tooLarge = "bytes, over the limit of 1032192";

  test("LOOP-13 is refused at once when it is a run's input, and the session goes on", async () => {
    const startedAtMs = performance.now();
    await expect(world.start({ sessionId: "echo-large" }, "x".repeat(1_100_000))).rejects.toThrow(
      new RegExp(`invalid_argument.*the run's input with its options takes 11\\d{5} ${tooLarge}`),
    );
    expect(performance.now() - startedAtMs).toBeLessThan(5_000);
    const run = await world.start({ sessionId: "echo-large" }, "y".repeat(500_000));
    await world.becomes(run, RunState.COMPLETED);
  });

  test("fails the run when it is a turn", async () => {
    await world.writeScript("shouter", { turns: [{ text: "x".repeat(1_100_000) }] });
    const run = await world.start({ agent: "shouter" }, "x");
    const failed = await world.becomes(run, RunState.FAILED);
    expect(failed).toMatchObject({ endReason: RunEndReason.TURN_TOO_LARGE, error: expect.stringContaining(tooLarge) });
  });
});
