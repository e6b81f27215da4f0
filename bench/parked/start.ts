import { quiet } from "../loop/plan.ts";
import { startRun, type World } from "../loop/world.ts";
import type { LiveRuns } from "./live-runs.ts";

export interface StartOptions {
  readonly world: World;
  readonly live: LiveRuns;
  readonly atOnce: number;
  readonly onProgress: (message: string) => void;
}

const tellEveryMs = 5_000;
const mostRepeated = 5;
const asking = { options: { functionTools: [{ name: "ask" }] } };
const plan = { ...quiet, id: "", tool: "ask", deltas: 1 };

/** Starts so many runs, each in a session of its own, and waits until all are parked; gives their ids. */
export async function startParked({ world, live, atOnce, onProgress }: StartOptions, count: number): Promise<string[]> {
  const ids: string[] = [];
  let started = 0;
  const one = async () => {
    while (started < count) {
      started += 1;
      const { id } = await startPatiently(world, onProgress);
      await live.parked(id);
      ids.push(id);
    }
  };
  using _progress = tellProgress(() => ids.length, count, onProgress);
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, one));
  return ids;
}

/** On a machine that does more than this, a service may be silent for too long: then another run is started. */
async function startPatiently(world: World, onProgress: (message: string) => void) {
  for (let left = mostRepeated; ; left -= 1) {
    try {
      return await startRun(world, plan, asking);
    } catch (error) {
      if (left === 0) throw error;
      onProgress(`a run could not be started: ${error}`);
    }
  }
}

/** How many there are, how many come each second, and how long the rest will take. */
function tellProgress(done: () => number, count: number, onProgress: (message: string) => void): Disposable {
  let last = { atMs: performance.now(), done: 0 };
  const timer = setInterval(() => {
    const current = { atMs: performance.now(), done: done() };
    const perSecond = ((current.done - last.done) * 1_000) / (current.atMs - last.atMs);
    const rest = perSecond > 0 ? `${Math.ceil((count - current.done) / perSecond)} s left` : "nothing moves";
    onProgress(`${current.done} of ${count} parked, ${Math.round(perSecond)}/s, ${rest}`);
    last = current;
  }, tellEveryMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
