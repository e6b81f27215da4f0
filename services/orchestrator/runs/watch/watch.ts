/**
 * Follows a run on any replica: what is stored, then what comes.
 *
 * watch-1  Stored events are shown once each and in order. The live subject brings them after they are stored; one that skips
 *     something is a gap, and the log fills it.
 * watch-2  The subscription stands before the log is read, so that nothing falls between the two.
 * watch-3  News can be lost with the server that carried them: after a silence, and after a return, the log is read.
 * watch-4  Nothing is shown after the terminal event, and there is only one in a log.
 * watch-5  A log begins with whose it is: whoever is not the owner of the session is refused there, before anything is shown.
 * watch-6  What the log has of a turn that is not committed is shown to whoever lacks it; the deltas that follow join it, or the
 *     gap between the two is filled by the process that works on the run.
 * watch-7  A stream that ends well has told all up to the terminal event from where it began. To ask for what follows the last event,
 *     or for what comes from now on, of a run that has ended, is to want nothing that is left; what lies beyond the next event is
 *     refused, whether or not the run goes on.
 * watch-8  Who was shown something of a turn in the middle of which the run ends is told, before the end, what the record has of it.
 * watch-9  What came live is shown as it came: it is one message for all watchers, and its bytes are known.
 * watch-10 Who does not read is told no deltas meanwhile: when it reads again, it is shown the events that came and the text so far.
 * watch-11 What is missing in the log between two events, or before the first, is told as a gap before what follows it. Without its
 *     first event a log does not say whose it is: then it is shown to services alone.
 */

import { create } from "@bufbuild/protobuf";
import type { TurnCommitted } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type WatchRunResponse, WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { requireReached } from "#runtime/failure/sequence.ts";
import { type Asker, requireOwner } from "#runtime/failure/session-owner.ts";
import { gapUpdate, startUpdate } from "#runtime/rpc/watching/log-update.ts";
import type { RunLog } from "../../log/journal.ts";
import { type Draft, draftAfter, replacedFromDraft } from "../../log/state/draft.ts";
import type { LogRecord } from "../../log/state/log-record.ts";
import { notFound } from "../existing-run.ts";
import {
  type DeltaCursor,
  type Step,
  stepFromCommit,
  stepFromDelta,
  stepFromEnd,
  stepFromSnapshot,
} from "./delta-cursor.ts";

/** Something that was told live; the position is that of a stored event, the instance that of a claim. */
export interface LiveUpdate {
  readonly update: WatchRunResponse;
  readonly position?: number | undefined;
  readonly instance?: string | undefined;
}

export interface LiveSubscription extends AsyncDisposable {
  /**
   * The next update; undefined after a silence, and when updates may have been lost; `behind` when more came than is held for
   * one that does not read. Rejects once the signal has aborted.
   */
  next(): Promise<LiveUpdate | "behind" | undefined>;
  /** The stored events that came from that one on; undefined when they are to be read in the log. */
  since(sequence: number): LiveUpdate[] | undefined;
}

export interface LiveUpdates {
  /** Resolves when the subscription stands. */
  subscribe(runId: string, signal: AbortSignal): Promise<LiveSubscription>;
}

export interface WatchOptions {
  readonly log: RunLog;
  readonly live: LiveUpdates;
  /** Asks the process that works on the run to tell the text so far. */
  readonly requestSnapshot: (instance: string, runId: string) => void;
}

export interface WatchRequest {
  readonly runId: string;
  /** Absent for what comes from now on. */
  readonly fromSequence: bigint | undefined;
  readonly includeDeltas: boolean;
  readonly cursor: DeltaCursor | undefined;
  /** watch-5 */
  readonly asker: Asker;
}

export async function* watchRun(
  options: WatchOptions,
  request: WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<WatchRunResponse> {
  const { log, live, requestSnapshot } = options;
  const { runId, includeDeltas } = request;
  await using subscription = await live.subscribe(runId, signal); // watch-2
  const view = createView(request);
  const ask = () => {
    if (includeDeltas && view.holder !== undefined) requestSnapshot(view.holder, runId);
  };
  let position = 0;
  let mustRead = true;
  for (;;) {
    if (mustRead) {
      const part = await log.read(runId, position);
      position = part.position;
      for (const record of part.records) for (const shown of view.event(record)) yield shown;
      if (position === 0) notFound(runId);
      yield* view.begin(); // watch-7
      if (view.hasEnded) return; // watch-4
      yield* view.draft(); // watch-6
      ask();
    }
    const next = await subscription.next();
    const came = next === "behind" ? subscription.since(view.nextSequence) : next && [next]; // watch-10
    mustRead = came === undefined; // watch-3
    for (const { update: response, position: storedAt, instance = "" } of came ?? []) {
      const { update } = response;
      if (update.case === "event") {
        mustRead = update.value.sequence > view.nextSequence || storedAt === undefined; // watch-1
        if (mustRead || storedAt === undefined) break;
        for (const shown of view.event({ event: update.value, instance }, response)) yield shown;
        position = Math.max(position, storedAt);
        if (view.hasEnded) return; // watch-4
        yield* view.draft(); // watch-6
      } else if (includeDeltas && (update.case === "delta" || update.case === "replaced")) {
        const step = view.live(update, response);
        for (const shown of step.shown) yield shown;
        if (step.isGap) ask();
      }
    }
    if (next === "behind" && !mustRead) ask();
  }
}

/** watch-11 */
function requireBeginning(runId: string, asker: Asker): void {
  if (asker === undefined) return;
  refuse("data_loss", `the beginning of run ${runId} is lost, and with it whose it is`, { reason: "RECORD_LOST" });
}

function createView({ runId, fromSequence: asked, includeDeltas, cursor: startCursor, asker }: WatchRequest) {
  let fromSequence = asked === undefined ? Number.POSITIVE_INFINITY : Number(asked);
  let hasBegun = false;
  let nextSequence = 0;
  let committedTurns = 0;
  let cursor = startCursor;
  let holder: string | undefined;
  let draft: Draft | undefined;
  let hasEnded = false;
  let hasAskedAt: string | undefined;

  function* take(step: Step, came?: WatchRunResponse): Generator<WatchRunResponse> {
    cursor = step.cursor;
    for (const { kind, value } of step.shown) yield responseFrom({ case: kind, value } as Shape, came);
  }

  /** watch-1: what was shown already is passed over. */
  function* event(record: WatchedRecord, came?: WatchRunResponse): Generator<WatchRunResponse> {
    const { event: stored, instance } = record;
    if (stored.sequence < nextSequence) return;
    const missing = Math.max(nextSequence, fromSequence);
    if (stored.sequence > 0 && nextSequence === 0) requireBeginning(runId, asker); // watch-11
    if (stored.sequence > missing) yield responseFrom(gapUpdate(BigInt(missing), BigInt(stored.sequence - 1))); // watch-11
    nextSequence = stored.sequence + 1;
    const body = stored.event;
    if (body.case === "accepted") requireOwner(body.value, asker); // watch-5
    if (body.case === "claimed") holder = instance;
    if (body.case === "textCheckpoint") draft = draftAfter(draft, body.value);
    if (body.case === "claimed" || body.case === "turnCommitted") draft = undefined;
    if (body.case === "parked") holder = undefined;
    if (body.case === "ended") {
      hasEnded = true;
      const step = stepFromEnd(cursor, draft && replacedFromDraft(draft), committedTurns); // watch-8
      if (includeDeltas && stored.sequence >= fromSequence) yield* take(step);
    }
    if (body.case === "turnCommitted") {
      committedTurns = body.value.turn;
      const step = stepFromCommit(cursor, body.value.turn, body.value.attempt, textOfTurn(body.value));
      if (includeDeltas && stored.sequence >= fromSequence) yield* take(step);
      else cursor = step.cursor;
    }
    if (stored.sequence >= fromSequence) yield responseFrom({ case: "event", value: stored }, came);
  }

  function* showDraft(): Generator<WatchRunResponse> {
    if (includeDeltas && draft !== undefined)
      yield* take(stepFromSnapshot(cursor, replacedFromDraft(draft), committedTurns));
  }

  /** watch-7: once, when what stood at first has been taken in. */
  function* begin(): Generator<WatchRunResponse> {
    if (hasBegun) return;
    hasBegun = true;
    const next = BigInt(nextSequence);
    requireReached(`run ${runId}`, asked ?? next, next);
    if (asked !== undefined) return;
    fromSequence = nextSequence;
    yield responseFrom(startUpdate(next));
  }

  function live(update: Extract<Shape, { case: "delta" | "replaced" }>, came: WatchRunResponse | undefined) {
    const step =
      update.case === "delta"
        ? stepFromDelta(cursor, update.value, committedTurns)
        : stepFromSnapshot(cursor, update.value, committedTurns);
    const place = `${update.value.turn} ${update.value.attempt}`;
    const isGap = step.isGap && hasAskedAt !== place; // one question an attempt: its answer is on the way
    if (step.isGap) hasAskedAt = place;
    else if (step.shown.length > 0) hasAskedAt = undefined;
    return { shown: take(step, came), isGap };
  }

  return {
    begin,
    event,
    draft: showDraft,
    live,
    get nextSequence() {
      return nextSequence;
    },
    get holder() {
      return holder;
    },
    get hasEnded() {
      return hasEnded;
    },
  };
}

type WatchedRecord = Pick<LogRecord, "event" | "instance">;

type Shape = Exclude<WatchRunResponse["update"], { case: undefined }>;

/** watch-9 */
function responseFrom(update: Shape, came?: WatchRunResponse): WatchRunResponse {
  if (came?.update.value === update.value) return came;
  return create(WatchRunResponseSchema, { update });
}

function textOfTurn({ items }: TurnCommitted): string {
  return items.map(({ item }) => (item.case === "message" ? item.value.text : "")).join("");
}
