import { readFileSync } from "node:fs";

/** On a machine without any time to spare, patience lasts so many times as long. */
const LONGEST_TIMES = 4;
const TICK_MS = 1_000;

export interface Patience extends Disposable {
  /** Begins anew. */
  refresh(): void;
}

/**
 * Calls back after that time. Time in which processes of this machine waited for a processor counts less: a run that is not heard of
 * then is slow, not lost.
 */
export function openPatience(ms: number, onOver: () => void): Patience {
  let leftMs = ms;
  let last = { atMs: performance.now(), stalledMs: stalledMs() };
  const timer = setInterval(() => {
    const now = { atMs: performance.now(), stalledMs: stalledMs() };
    const passedMs = now.atMs - last.atMs;
    leftMs -= Math.max(passedMs / LONGEST_TIMES, passedMs - (now.stalledMs - last.stalledMs));
    last = now;
    if (leftMs > 0) return;
    clearInterval(timer);
    onOver();
  }, TICK_MS);
  return {
    refresh() {
      leftMs = ms;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

/** How long some process has waited for a processor since the machine started; nothing where Linux does not tell. */
function stalledMs(): number {
  try {
    return Number(/^some .*total=(\d+)/.exec(readFileSync("/proc/pressure/cpu", "utf8"))?.[1] ?? 0) / 1_000;
  } catch {
    return 0;
  }
}
