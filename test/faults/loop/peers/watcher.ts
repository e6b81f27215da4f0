import type { Client } from "@connectrpc/connect";
import type { RunService, WatchRunResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { isPassing } from "../../retry-request.ts";
import type { Seen, Watched } from "../history/history.ts";

export interface WatcherOptions {
  readonly name: string;
  readonly runs: Client<typeof RunService>;
  readonly runId: string;
  readonly fromSequence: number;
  readonly includeDeltas: boolean;
  /** It leaves after so many updates, and comes back where it stood; so many times, a few unless told, then it stays. */
  readonly leavesAfter: number;
  readonly mostLeaves?: number;
  readonly signal: AbortSignal;
  readonly onSeen: (seen: Seen) => void;
}

/** A client that follows a run to its end over as many connections as that takes. Resolves when it ended, or was given up. */
export async function watch(options: WatcherOptions): Promise<Watched> {
  const { name, fromSequence, signal, mostLeaves = 6 } = options;
  const seen: Seen[] = [];
  for (let connection = 1; ; connection += 1) {
    const leavesAfter = connection <= mostLeaves ? options.leavesAfter : Number.POSITIVE_INFINITY;
    try {
      if (await watchOnce({ ...options, leavesAfter }, seen)) return { name, fromSequence, seen, hasEnded: true };
    } catch (error) {
      if (signal.aborted) return { name, fromSequence, seen, hasEnded: false };
      if (!isPassing(error)) return { name, fromSequence, seen, hasEnded: false, error: messageFromUnknown(error) };
      await delay(50);
    }
  }
}

/** Whether the stream came to its end. */
async function watchOnce(options: WatcherOptions, seen: Seen[]): Promise<boolean> {
  const { runs, runId, includeDeltas, leavesAfter, signal, onSeen } = options;
  const leaving = new AbortController();
  using ending = openEnding(signal, leaving.signal);
  const ends = ending.signal;
  const afterDelta = cursorOf(seen);
  const fromSequence = BigInt(nextSequence(options, seen));
  let count = 0;
  try {
    const request = { runId, fromSequence, includeDeltas, ...(afterDelta && { afterDelta }) };
    for await (const { update } of runs.watchRun(request, { signal: ends })) {
      const entry = seenFrom(update);
      if (entry === undefined) continue;
      seen.push(entry);
      onSeen(entry);
      count += 1;
      const isLast = entry.kind === "event" && entry.event.event.case === "ended";
      if (count >= leavesAfter && !isLast) {
        leaving.abort();
        return false;
      }
    }
    return true;
  } finally {
    leaving.abort();
  }
}

function nextSequence({ fromSequence }: WatcherOptions, seen: readonly Seen[]): number {
  return fromSequence + seen.filter(({ kind }) => kind === "event").length;
}

/** Where the client stands in a turn that is not committed: after a delta, or after the text that a reset told. */
function cursorOf(seen: readonly Seen[]): { turn: number; attempt: number; index: number } | undefined {
  const last = seen.findLast((entry) => isSpeech(entry) || isCommit(entry));
  if (last?.kind === "delta") return { turn: last.delta.turn, attempt: last.delta.attempt, index: last.delta.index };
  if (last?.kind !== "replaced" || last.replaced.deltaCount === 0) return undefined;
  return { turn: last.replaced.turn, attempt: last.replaced.attempt, index: last.replaced.deltaCount - 1 };
}

/** Progress and logs of calls are none. */
function isSpeech(entry: Seen): boolean {
  if (entry.kind === "delta") return entry.delta.delta.case !== "progress" && entry.delta.delta.case !== "log";
  return entry.kind === "replaced";
}

function isCommit(entry: Seen): boolean {
  return entry.kind === "event" && entry.event.event.case === "turnCommitted";
}

function seenFrom(update: WatchRunResponse["update"]): Seen | undefined {
  if (update.case === "event") return { kind: "event", event: update.value };
  if (update.case === "delta") return { kind: "delta", delta: update.value };
  return update.case === "replaced" ? { kind: "replaced", replaced: update.value } : undefined;
}
