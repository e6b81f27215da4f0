// Time in which a slow machine is as quick as any: for tests that bound what something may take.

const TICK_MS = 2;
let ticks = 0;
let ticking: NodeJS.Timeout | undefined;

/**
 * A clock for what others take, while this thread waits: it goes by the ticks of a timer, which on a machine that stalls, or has other
 * work to do, come as late as all else.
 */
export function tickedMs(): number {
  ticking ??= setInterval(() => ticks++, TICK_MS).unref();
  return ticks * TICK_MS;
}

const yardstick = `[${"1,".repeat(500_000)}1]`;
const YARDSTICK_MS = 10;

/** What this thread computes for the work, in ms of a machine that parses the yardstick in its time, or of this one if it is quicker. */
export async function computedMs(work: () => unknown): Promise<number> {
  clearInterval(ticking); // it would count as work
  ticking = undefined;
  const slowness = (await cpuMsOf(() => JSON.parse(yardstick))) / YARDSTICK_MS;
  return (await cpuMsOf(work)) / Math.max(slowness, 1);
}

async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage();
  await work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
