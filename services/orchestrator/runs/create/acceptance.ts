/**
 * "Accepted" means stored (LOOP-13).
 *
 * accept-1  The order is: publish the wake-up, append `accepted`, enqueue the run in its session, answer the creator. If the creator dies in
 *     between, the process with the wake-up does the rest.
 * accept-2  An idempotency key leads to one run id for ever, and a run id to one `accepted`: a repeated creation finds the first run, and does
 *     what the first creator left undone. A request that no log takes is refused before it takes a key.
 * accept-3  A run that was accepted before had its wake-up then. It gets no second one: an idle session that finds its run in this way would
 *     wake itself for ever.
 * accept-4  A run that stands in its session's queue was accepted. If its log is gone, it was deleted, and its key starts nothing again.
 */

import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type RunAccepted, RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { currentTrace } from "#runtime/telemetry/trace-context.ts";
import { createJournal, openJournal, type RunJournal } from "../../log/journal.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { enqueue, findEntry, type SessionQueues } from "../../sessions/queue.ts";
import type { AcceptedHere } from "../../sessions/worker/accepted-here.ts";
import type { ExistingRunOptions } from "../existing-run.ts";
import type { Place, RunQuota } from "../run-quota.ts";

export interface TakenKey {
  readonly runId: string;
  /** Where the key stands: the run's events, and its place in the queue, stand behind it. */
  readonly keyPosition: number;
}

export interface RunKeys {
  /** The run that the key leads to: `runId`, unless the key was taken before. */
  take(sessionId: string, key: string, runId: string): Promise<TakenKey>;
  /** The run that the key leads to; undefined for a key that is not taken. */
  find(sessionId: string, key: string): Promise<string | undefined>;
}

export interface AcceptanceOptions extends ExistingRunOptions {
  readonly queues: SessionQueues;
  readonly keys: RunKeys;
  /** For the worker of the same process; without it, the worker reads the log. */
  readonly acceptedHere?: Pick<AcceptedHere, "open">;
  /** What principals have in flight; without it, nobody counts. */
  readonly runQuota?: RunQuota;
}

/** `isFirst`: the session was opened for this run, and its queue most likely is empty; `place` is its own in its principal's share. */
export async function acceptRun(
  options: AcceptanceOptions,
  accepted: RunAccepted,
  { isFirst = false, place }: { isFirst?: boolean; place?: Place | undefined } = {},
): Promise<FoldedRun> {
  const { log, queues, wakes, keys, clock } = options;
  const { sessionId, idempotencyKey } = accepted;
  const nowMs = clock.now();
  const freshId = newRunId(nowMs);
  const body = { case: "accepted" as const, value: { ...accepted, ...currentTrace() } };
  let taken: TakenKey = { runId: freshId, keyPosition: 0 };
  if (idempotencyKey !== "") {
    const event = create(RunEventSchema, { runId: freshId, createTime: timestampFromMs(nowMs), event: body });
    log.check({ event, epoch: 0, instance: "" });
    taken = await keys.take(sessionId, idempotencyKey, freshId); // accept-2
  }
  const { runId } = taken;
  const journal = createJournal(log, runId, clock);
  const isTaken = runId !== freshId;
  if (isTaken && (await journal.refresh()) === undefined) await refuseDeleted(queues, sessionId, taken, journal); // accept-3, accept-4
  const end = isFirst ? Promise.resolve(undefined) : queues.last(sessionId);
  end.catch(() => {}); // who enqueues the run gets the error
  const announce = (eventCount: number) => wakes.send({ sessionId, runId, eventCount });
  using freshRun = isTaken ? undefined : options.acceptedHere?.open(runId);
  const event = await journal.append((state) => (state === undefined ? body : undefined), { announce }); // accept-1
  if (event !== undefined) options.runQuota?.add(accepted.principal, runId, place);
  const acceptedPosition = event === undefined ? (await log.first(runId))?.position : journal.position;
  const { state } = journal;
  if (state === undefined || acceptedPosition === undefined)
    return refuse("data_loss", `run ${runId} has vanished`, { reason: "RECORD_LOST" });
  const entry = await enqueue(queues, { sessionId, runId, acceptedPosition, principal: state.accepted.principal }, end);
  freshRun?.resolve({ journal, entry });
  return state;
}

/** accept-4. Its first creator may have accepted and enqueued it meanwhile: then its log is there by now. */
async function refuseDeleted(
  queues: SessionQueues,
  sessionId: string,
  { runId, keyPosition }: TakenKey,
  journal: RunJournal,
): Promise<void> {
  const entry = await findEntry(queues, await queues.last(sessionId), { runId, acceptedPosition: keyPosition });
  if (entry === undefined) return;
  if ((await journal.refresh()) !== undefined) return;
  const metadata = { run_id: runId };
  refuse("not_found", `run ${runId} of this idempotency key was deleted`, { reason: "RUN_NOT_FOUND", metadata });
}

/** accept-2: the run that was accepted under a key, whatever has become of its session; undefined when there is none. */
export async function findAccepted(
  { log, queues, keys, clock }: AcceptanceOptions,
  sessionId: string,
  key: string,
): Promise<FoldedRun | undefined> {
  const runId = await keys.find(sessionId, key);
  if (runId === undefined) return undefined;
  const [first, { state }] = await Promise.all([log.first(runId), openJournal(log, runId, clock)]);
  if (first === undefined || state === undefined) return undefined; // its creator died, and is made up for
  const { principal } = state.accepted;
  await enqueue(queues, { sessionId, runId, acceptedPosition: first.position, principal });
  return state;
}

const digits = "0123456789abcdefghjkmnpqrstvwxyz";

/** Ids sort by the time of their making. */
function newRunId(nowMs: number): string {
  let time = "";
  for (let rest = nowMs; time.length < 9; rest = Math.floor(rest / 32)) time = digits[rest % 32] + time;
  const random = Array.from(randomBytes(12), (byte) => digits[byte % 32]).join("");
  return `run_${time}${random}`;
}
