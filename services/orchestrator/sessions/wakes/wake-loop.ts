import type { OperatorLog } from "#runtime/lifecycle/logger.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import type { Slots } from "./slots.ts";
import type { Wake, WakeQueue } from "./wake.ts";

export interface WakeLoopOptions {
  readonly queue: WakeQueue;
  /** How many wake-ups are worked on at the same time: none is fetched that no slot is free for. */
  readonly slots: Slots;
  readonly work: (wake: Wake) => Promise<void>;
  readonly clock: Clock;
  readonly logger: OperatorLog;
}

/** What a process has asked for comes to it also when it is frozen, and to others only after their wait. */
const mostAtOnce = 16;

/**
 * Fetches and works until the signal aborts; resolves when everything that was fetched has been put down. One is asked for
 * while few come; the more come, the more are asked for together.
 */
export async function runWakeLoop(options: WakeLoopOptions, signal: AbortSignal): Promise<void> {
  const { queue, slots, work, clock, logger } = options;
  const atWork = new Set<Promise<void>>();
  let atOnce = 1;
  const fetchAll = async (works: () => void) => {
    for (; !signal.aborted; await slots.untilFree(signal)) {
      const asked = Math.min(atOnce, slots.free);
      if (asked <= 0) continue; // what was lent has come back
      let came = 0;
      for await (const wake of queue.next(asked, signal)) {
        came += 1;
        slots.take();
        const done = work(wake).finally(() => {
          slots.giveBack();
          atWork.delete(done);
        });
        atWork.add(done);
      }
      works();
      atOnce = came < asked ? 1 : Math.min(mostAtOnce, atOnce * 2);
    }
  };
  const onError = (err: unknown) => logger.warn({ err }, "wake-ups cannot be fetched");
  await repeatUntilAborted(fetchAll, { initialMs: 50, maxMs: 1_000, clock, signal, onError });
  await Promise.all(atWork);
}
