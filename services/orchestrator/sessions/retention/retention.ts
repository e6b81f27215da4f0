/**
 * Removes sessions that were not used for long, as a whole: their runs' logs, their keys, and their queue.
 *
 * retention-1  A session goes when all its runs have ended and nothing was written for it since that long. One that has a run which
 *     waits for its client stays, however long it waits.
 * retention-2  What is removed is what stood when the session was looked at: a run that joins it meanwhile stays, and is its first.
 * retention-3  The queue, by which the runs are found, goes last: a removal that was cut off is finished by the next sweep.
 */

import { openPeriodic } from "#runtime/lifecycle/background.ts";
import type { OperatorLog } from "#runtime/lifecycle/logger.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { RunLog } from "../../log/journal.ts";
import { entriesBackward, findActiveRun, type QueueEntry, type SessionQueues } from "../queue.ts";
import { type ResultSweepOptions, sweepResults } from "./result-retention.ts";

export interface Retention {
  /** The entries of all queues that were written before that time, the oldest first. */
  entriesBefore(ms: number): AsyncIterable<QueueEntry>;
  /** When a run's log was last written; undefined when it is gone. */
  lastWrittenMs(runId: string): Promise<number | undefined>;
  removeLog(runId: string): Promise<void>;
  /** Removes the session's queue and keys as far as they stand at that position or before it. */
  removeQueue(sessionId: string, upToPosition: number): Promise<void>;
}

export interface SweepOptions {
  readonly retention: Retention;
  readonly queues: SessionQueues;
  readonly log: RunLog;
  readonly clock: Clock;
  readonly logger: Pick<OperatorLog, "warn">;
  /** How long a session that is at rest is kept. */
  readonly keptMs: number;
}

/** Gives how many sessions were removed. */
export async function sweepSessions(options: SweepOptions, signal: AbortSignal): Promise<number> {
  const { retention, clock, keptMs, logger } = options;
  const beforeMs = clock.now() - keptMs;
  const seen = new Set<string>();
  let removed = 0;
  for await (const { queued } of retention.entriesBefore(beforeMs)) {
    if (signal.aborted) break;
    const { sessionId } = queued;
    if (seen.has(sessionId)) continue;
    seen.add(sessionId);
    try {
      if (await removeIfIdle(options, sessionId, beforeMs)) removed += 1;
    } catch (error) {
      logger.warn({ err: error, sessionId }, "a session that is past its time could not be removed");
    }
  }
  return removed;
}

async function removeIfIdle(options: SweepOptions, sessionId: string, beforeMs: number): Promise<boolean> {
  const { retention, queues } = options;
  const last = await queues.last(sessionId);
  if (last === undefined) return false;
  const runIds = [];
  for await (const { queued } of entriesBackward(queues, last)) {
    const writtenMs = await retention.lastWrittenMs(queued.runId);
    if (writtenMs !== undefined && writtenMs >= beforeMs) return false; // retention-1
    if (writtenMs !== undefined) runIds.push(queued.runId);
  }
  if ((await findActiveRun(options, sessionId)) !== undefined) return false; // retention-1
  for (const runId of runIds) await retention.removeLog(runId);
  await retention.removeQueue(sessionId, last.position); // retention-2, retention-3
  return true;
}

const longestPauseMs = 3_600_000;
const shortestPauseMs = 1_000;

/** Sweeps again and again until it is disposed: sessions, and what only they had kept. */
export function openRetention(options: SweepOptions & ResultSweepOptions): AsyncDisposable {
  const { clock, keptMs, logger } = options;
  const everyMs = Math.min(longestPauseMs, Math.max(shortestPauseMs, keptMs / 10));
  const stack = new AsyncDisposableStack();
  const sweep = (what: string, work: (signal: AbortSignal) => Promise<unknown>) => {
    const onError = (error: unknown) => logger.warn({ err: error }, `${what} past their time could not be looked for`);
    stack.use(openPeriodic({ everyMs, clock, work, onError }));
  };
  sweep("sessions", (signal) => sweepSessions(options, signal));
  sweep("results", (signal) => sweepResults(options, signal));
  return stack;
}
