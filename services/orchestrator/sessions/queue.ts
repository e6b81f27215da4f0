/**
 * A session's runs take their turns in the order of its queue: a log of small entries, each of which links back to the
 * one before it.
 *
 * queue-1  An entry is written after its run was accepted, once: a process that finds an accepted run without one writes it.
 * queue-2  A run is claimed only when all before it have ended. So, going back from the last entry, the first run that was ever
 *     claimed has only ended ones before it, and nothing further back has to be looked at.
 * queue-3  A run whose log is broken is passed over, like one that was removed: it must not stop its session. Who works on the session
 *     writes its end, for which its clients wait. One that was only read badly may be held: the session is looked at again.
 */

import { create } from "@bufbuild/protobuf";
import { type QueuedRun, QueuedRunSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { createJournal, isPastHelp, type RunJournal, type RunLog, unlessBroken } from "../log/journal.ts";
import type { FoldedRun } from "../log/state/fold.ts";

export interface QueueEntry {
  readonly queued: QueuedRun;
  /** Where it stands in the store, which it shares with the logs of runs. */
  readonly position: number;
  /** Where pages of all sessions are read: its run was accepted before (queue-1). */
  readonly writtenAtMs?: number;
}

export interface SessionQueues {
  last(sessionId: string): Promise<QueueEntry | undefined>;
  before(entry: QueueEntry): Promise<QueueEntry | undefined>;
  /** Stores the entry if the session's last one stands where the entry says; gives where it stands. */
  append(queued: QueuedRun): Promise<{ kind: "appended"; position: number } | { kind: "conflict" }>;
}

/** Queues as they are looked through. */
export interface QueuePages {
  /** The entry before the one of the session that stands there. */
  beforePosition(sessionId: string, position: number): Promise<QueueEntry | undefined>;
  /** Some of the entries of all sessions before a position, the latest first; none when there are none. */
  latest(beforePosition: number | undefined): Promise<QueueEntry[]>;
}

/** The entries from the last one back. */
export async function* entriesBackward(
  queues: SessionQueues,
  from: QueueEntry | undefined,
): AsyncGenerator<QueueEntry> {
  for (let entry = from; entry !== undefined; entry = await queues.before(entry)) yield entry;
}

export interface Enqueued {
  readonly sessionId: string;
  readonly runId: string;
  readonly acceptedPosition: number;
  readonly principal?: string;
}

/**
 * queue-1: puts a run, accepted at that position, at the end of its session's queue unless it stands in it. Gives its entry. Where
 * the end was looked for before, an append shows whether it still is.
 */
export async function enqueue(queues: SessionQueues, run: Enqueued, end = queues.last(run.sessionId)) {
  for (let last = await end; ; last = await queues.last(run.sessionId)) {
    const found = await findEntry(queues, last, run);
    if (found !== undefined) return found;
    const queued = create(QueuedRunSchema, {
      sessionId: run.sessionId,
      runId: run.runId,
      principal: run.principal ?? "",
      previousRunId: last?.queued.runId ?? "",
      previousEntrySequence: BigInt(last?.position ?? 0),
    });
    const outcome = await queues.append(queued);
    if (outcome.kind === "appended") return { queued, position: outcome.position } satisfies QueueEntry;
  }
}

/** The entry of a run, if it stands in the queue; nothing before its acceptance is looked at. */
export async function findEntry(
  queues: SessionQueues,
  last: QueueEntry | undefined,
  { runId, acceptedPosition }: Pick<Enqueued, "runId" | "acceptedPosition">,
): Promise<QueueEntry | undefined> {
  for await (const entry of entriesBackward(queues, last)) {
    if (entry.position < acceptedPosition) return undefined;
    if (entry.queued.runId === runId) return entry;
  }
  return undefined;
}

/** A run of which nothing is known but that it was accepted. */
export interface FreshRun {
  readonly entry: QueueEntry;
  readonly journal: RunJournal;
}

export interface ActiveRun extends FreshRun {
  readonly state: FoldedRun;
}

interface Search {
  /** Where to begin, in place of the end of the queue; nothing is read of it. */
  readonly from?: FreshRun | undefined;
  /** Of a run that was worked on: only what is new of it is read. */
  readonly journal?: RunJournal | undefined;
  /** Where entries stand of runs that were claimed and have ended; gets those that are found. */
  readonly over?: Map<number, true>;
  /** Told of runs that are found on the way. */
  readonly onEnded?: (state: FoldedRun) => void;
  readonly onBroken?: (runId: string) => void;
}

/** The run whose turn it is: the first in the queue that has not ended. */
export async function findActiveRun(
  { queues, log, clock }: { queues: SessionQueues; log: RunLog; clock: Clock },
  sessionId: string,
  { from, journal: known, over, onEnded, onBroken }: Search = {},
): Promise<ActiveRun | undefined> {
  let active: ActiveRun | undefined;
  for await (const entry of entriesBackward(queues, from?.entry ?? (await queues.last(sessionId)))) {
    const { runId, previousEntrySequence } = entry.queued;
    const seen = [from?.journal, known].find((one) => one?.state?.runId === runId);
    const journal = seen ?? createJournal(log, runId, clock);
    const isRead = journal === from?.journal || journal.state?.phase.kind === "ended";
    const reading = isRead ? Promise.resolve(journal.state) : journal.refresh();
    const state = await reading.catch(async (error: unknown) => {
      unlessBroken(error);
      if (!(await isPastHelp(log, runId))) throw error;
      onBroken?.(runId); // queue-3
    });
    if (state === undefined) continue;
    if (state.phase.kind !== "ended") active = { entry, journal, state };
    else onEnded?.(state);
    if (state.claim !== undefined && state.phase.kind === "ended") over?.set(entry.position, true);
    if (state.claim !== undefined || over?.has(Number(previousEntrySequence))) break; // queue-2
  }
  return active;
}
