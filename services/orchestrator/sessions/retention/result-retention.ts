import type { ResultRemoval } from "#runtime/results/store/removal.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { SessionQueues } from "../queue.ts";

export interface ResultSweepOptions {
  readonly results: ResultRemoval;
  readonly queues: Pick<SessionQueues, "last">;
  readonly clock: Clock;
  readonly keptMs: number;
}

/**
 * Removes stored results after the runs of their sessions: while a session has runs, the log of one may refer to its results,
 * however old they are. One whose session has none is kept as long as its runs would be. Gives how many were removed.
 */
export async function sweepResults(options: ResultSweepOptions, signal: AbortSignal): Promise<number> {
  const { results, queues, clock, keptMs } = options;
  const beforeMs = clock.now() - keptMs;
  const isUsedById = new Map<string, boolean>();
  let removed = 0;
  for (const result of await results.list()) {
    if (signal.aborted) return removed;
    if (result.storedMs >= beforeMs) continue;
    const isUsed = isUsedById.get(result.sessionId) ?? (await queues.last(result.sessionId)) !== undefined;
    isUsedById.set(result.sessionId, isUsed);
    if (isUsed) continue;
    await results.remove(result);
    removed += 1;
  }
  return removed + (await results.removeCutOff());
}
