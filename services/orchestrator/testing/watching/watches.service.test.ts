import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Run, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import { runSubjects } from "../../subscriptions/run-subjects.ts";
import { openScriptedWorld, type ScriptedWorld } from "../scripted-world.ts";

let world: ScriptedWorld;
beforeAll(async () => {
  world = await openScriptedWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

async function told({ id: runId }: Run, fromSequence?: bigint): Promise<string[]> {
  const seen: string[] = [];
  const from = fromSequence === undefined ? {} : { fromSequence };
  for await (const { update } of world.runs.watchRun({ runId, ...from })) {
    if (update.case === "event") seen.push(`${update.value.sequence} ${update.value.event.case}`);
    if (update.case === "start") seen.push(`start ${update.value.nextSequence}`);
    if (update.case === "gap") seen.push(`gap ${update.value.firstSequence}-${update.value.lastSequence}`);
  }
  return seen;
}

async function ended(): Promise<Run> {
  const run = await world.start({ agent: "echo" }, "hello");
  return world.becomes(run, RunState.COMPLETED);
}

async function lose({ id }: Run, ...sequences: number[]): Promise<void> {
  const records = await Array.fromAsync(readSubject(world.bus, runSubjects.log(id)));
  for (const sequence of sequences)
    await world.bus.manager.streams.deleteMessage("TOOLBUS_RUNS", records[sequence]?.sequence ?? 0);
}

const whole = ["0 accepted", "1 claimed", "2 turnCommitted", "3 ended"];

describe("LOOP-10 a watch of a run", () => {
  test("LOOP-10 begins with all, in the middle or now, and sees everything once from wherever it goes on", async () => {
    const run = await ended();
    for (const [sequence] of [...whole, "the end"].entries()) {
      expect(await told(run, BigInt(sequence))).toEqual(whole.slice(sequence));
    }
    expect(await told(run)).toEqual(["start 4"]);
    await expect(told(run, 5n)).rejects.toMatchObject({
      code: 11, // out_of_range
      message: expect.stringContaining(`run ${run.id} has no event 5: the next one is 4`),
    });
  });

  test("LOOP-10 is told once what the log has lost, before what stands", async () => {
    const [middle, head] = [await ended(), await ended()];
    await lose(middle, 1, 2);
    expect(await told(middle, 0n)).toEqual(["0 accepted", "gap 1-2", "3 ended"]);
    expect(await told(middle, 2n)).toEqual(["gap 2-2", "3 ended"]);
    expect(await told(middle, 3n)).toEqual(["3 ended"]);
    await lose(head, 0, 1);
    expect(await told(head, 0n)).toEqual(["gap 0-1", "2 turnCommitted", "3 ended"]);
  });
});
