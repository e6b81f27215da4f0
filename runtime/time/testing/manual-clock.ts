import type { Clock } from "../clock.ts";

interface Sleeper {
  wakesAt: number;
  wake: () => void;
}

export interface ManualClock extends Clock {
  /** Moves the time on and wakes, in the order of their times, all whose delay is over; they have run when this resolves. */
  advance(ms: number): Promise<void>;
  /** How many delays wait: lets a test see that its subject has gone to sleep. */
  readonly sleeping: number;
}

/** A clock that stands still until a test advances it. */
export function createManualClock(startMs = 0): ManualClock {
  let nowMs = startMs;
  const sleepers = new Set<Sleeper>();

  function sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const onAbort = () => {
        sleepers.delete(sleeper);
        reject(signal?.reason);
      };
      const sleeper: Sleeper = {
        wakesAt: nowMs + ms,
        wake: () => {
          sleepers.delete(sleeper);
          signal?.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      sleepers.add(sleeper);
    });
  }

  async function advance(ms: number): Promise<void> {
    const target = nowMs + ms;
    for (;;) {
      const due = [...sleepers].filter((s) => s.wakesAt <= target).sort((a, b) => a.wakesAt - b.wakesAt)[0];
      if (!due) break;
      nowMs = Math.max(nowMs, due.wakesAt);
      due.wake();
      await settled();
    }
    nowMs = target;
    await settled();
  }

  return {
    now: () => nowMs,
    delay: sleep,
    advance,
    get sleeping() {
      return sleepers.size;
    },
  };
}

/** One turn of the event loop: everything that a woken sleeper does without I/O has happened after it. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
