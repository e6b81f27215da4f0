import { create } from "@bufbuild/protobuf";
import {
  RunChangeSchema,
  RunDeletedSchema,
  type WatchRunsRequest,
  type WatchRunsResponse,
} from "#gen/toolbus/run/v1/run_service_pb.ts";
import { requireReached } from "#runtime/failure/sequence.ts";
import { isOwner, requireOwner } from "#runtime/failure/session-owner.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { gapUpdate, startUpdate } from "#runtime/rpc/watching/log-update.ts";
import type { RunLog } from "../../log/journal.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import type { SessionQueues } from "../../sessions/queue.ts";
import type { RunChange } from "./recent-changes.ts";
import type { RunChanges } from "./run-changes.ts";
import { filterFrom, type RunFilter, rowFrom } from "./run-filter.ts";

export interface WatchRunsOptions {
  readonly log: RunLog;
  readonly queues: SessionQueues;
  readonly changes: RunChanges;
}

/** Changes of the caller's own runs, or of all for a service, until the signal aborts. */
export async function* watchRuns(
  options: WatchRunsOptions,
  request: WatchRunsRequest,
  caller: Caller,
  signal: AbortSignal,
): AsyncGenerator<WatchRunsUpdate> {
  const { sessionId, fromSequence } = request;
  await requireOwnSession(options, sessionId, caller);
  const from = fromSequence === undefined ? undefined : Number(fromSequence);
  using following = await options.changes.join(from, signal);
  const next = BigInt(following.next);
  requireReached("the store of runs", fromSequence ?? 0n, next);
  if (fromSequence === undefined) yield startUpdate(next);
  const filter = filterFrom(request);
  const concerns = (state: FoldedRun) =>
    (sessionId === "" || state.accepted.sessionId === sessionId) && filter.concerns(state);
  const { recent } = following;
  let at = Math.max(from ?? following.next, 1);
  for (let number = at < recent.first ? -1 : recent.numberAt(at); ; ) {
    if (number < recent.firstNumber) {
      if (at < recent.first) yield gapUpdate(BigInt(at), BigInt(recent.first - 1));
      at = Math.max(at, recent.first);
      number = recent.firstNumber;
    }
    const changes = recent.since(number);
    for (const change of changes) {
      number += 1;
      if (change.after !== undefined && change.sequence < at) continue; // the follower was behind the store
      at = Math.max(at, change.sequence + 1);
      if (isOwner(change.principal, caller)) yield* toldFrom(change, concerns, filter);
    }
    if (changes.length === 0) await following.more(signal);
  }
}

export type WatchRunsUpdate = Exclude<WatchRunsResponse["update"], { case: undefined }>;

type Concerns = (state: FoldedRun) => boolean;

/** Of a run that passes no more, its id alone, and only where it may have passed before. */
function* toldFrom(change: RunChange, concerns: Concerns, filter: RunFilter): Generator<WatchRunsUpdate> {
  const { runId, before, after } = change;
  if (after === undefined) return yield { case: "deleted", value: create(RunDeletedSchema, { runId }) };
  const mayHavePassed = before !== "none" && (before === "unknown" || filter.takes(before));
  const isTaken = filter.takes(after);
  if (!concerns(after) || !(isTaken || mayHavePassed)) return;
  const sequence = BigInt(change.sequence);
  const value = create(RunChangeSchema, { sequence, runId, ...(isTaken && { run: rowFrom(after) }) });
  yield { case: "event", value };
}

/** Nobody follows a session of somebody else. One without a run is nobody's yet. */
async function requireOwnSession({ log, queues }: WatchRunsOptions, sessionId: string, caller: Caller): Promise<void> {
  const entry = sessionId === "" ? undefined : await queues.last(sessionId);
  const first = entry && (await log.first(entry.queued.runId));
  if (first?.event.event.case === "accepted") requireOwner(first.event.event.value, caller, `session ${sessionId}`);
}
