/*
 * How many steps a second does a streamed run take, from its creation to its end as its client sees it? A step is a turn of the
 * model with text that streams in 25 pieces, and a call of a tool. Beside it, in alternation, the loop of the AI SDK in memory, in a process
 * of its own, with the same model and a tool that answers the same.
 */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type BenchResult, comparedResult } from "../result.ts";
import { quiet } from "./plan.ts";
import { followToEnd, startRun, type World } from "./world.ts";

const rounds = 5;
const plan = { ...quiet, turns: 100, deltas: 25 };

export async function measureSteps(world: World): Promise<BenchResult> {
  const child = fork(fileURLToPath(new URL("in-memory.ts", import.meta.url)));
  try {
    await once(child, "message");
    const ours: number[] = [];
    const theirs: number[] = [];
    for (let round = 0; round <= rounds; round += 1) {
      const pair = [await stepsOfRun(world), await stepsInMemory(child)] as const;
      if (round === 0) continue; // warms up
      ours.push(pair[0]);
      theirs.push(pair[1]);
    }
    return comparedResult({ bench: "loop", metric: "streamed_steps_per_s", unit: "1/s" }, ours, theirs);
  } finally {
    child.kill();
  }
}

async function stepsOfRun(world: World): Promise<number> {
  const startedAtMs = performance.now();
  const run = await startRun(world, { ...plan, id: crypto.randomUUID() });
  await followToEnd(world, run.id, true);
  return (plan.turns * 1_000) / (performance.now() - startedAtMs);
}

async function stepsInMemory(child: ChildProcess): Promise<number> {
  child.send({ ...plan, id: crypto.randomUUID() });
  const [{ ms }] = (await once(child, "message")) as [{ ms: number }];
  return (plan.turns * 1_000) / ms;
}
