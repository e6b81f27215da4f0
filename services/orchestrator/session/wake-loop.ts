import { createBackoff } from "#runtime/time/backoff.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { Wake, WakeQueue } from "./wake.ts";
import type { Log } from "./worker-options.ts";

export interface WakeLoopOptions {
  readonly queue: WakeQueue;
  /** How many wake-ups are worked on at the same time: one is fetched for each free slot and none beforehand. */
  readonly slots: number;
  readonly work: (wake: Wake) => Promise<void>;
  readonly clock: Clock;
  readonly logger: Log;
}

/** Fetches and works until the signal aborts; resolves when everything that was fetched has been put down. */
export async function runWakeLoop(options: WakeLoopOptions, signal: AbortSignal): Promise<void> {
  const { queue, slots, work, clock, logger } = options;
  const atWork = new Set<Promise<void>>();
  const backoff = createBackoff({ initialMs: 50, maxMs: 1_000 });
  while (!signal.aborted) {
    try {
      const wake = await queue.next(signal);
      backoff.reset();
      if (wake === undefined) continue;
      const done = work(wake).finally(() => atWork.delete(done));
      atWork.add(done);
      if (atWork.size >= slots) await Promise.race(atWork);
    } catch (error) {
      if (signal.aborted) break;
      logger.warn({ err: error }, "wake-ups cannot be fetched");
      await clock.delay(backoff.next(), signal).catch(() => {}); // aborted: the loop's condition sees it
    }
  }
  await Promise.all(atWork);
}
