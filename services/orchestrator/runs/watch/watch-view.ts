/** What one watcher has seen of a run, and what it is to be shown next. `watch.ts` has the rules (watch-…). */

import { create } from "@bufbuild/protobuf";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type WatchRunResponse, WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { requireReached } from "#runtime/failure/sequence.ts";
import { requireOwner } from "#runtime/failure/session-owner.ts";
import { type Caller, isServiceItself } from "#runtime/rpc/identity.ts";
import { gapUpdate, startUpdate } from "#runtime/rpc/watching/log-update.ts";
import { type Draft, draftAfter, replacedFromDraft } from "../../log/state/draft/draft.ts";
import type { LogRecord } from "../../log/state/log-record.ts";
import { textOfItems } from "../../log/state/view.ts";
import {
  type DeltaCursor,
  type Step,
  stepFromCommit,
  stepFromDelta,
  stepFromEnd,
  stepFromSnapshot,
} from "./delta-cursor.ts";

export interface WatchRequest {
  readonly runId: string;
  /** Absent for what comes from now on. */
  readonly fromSequence: bigint | undefined;
  readonly includeDeltas: boolean;
  readonly cursor: DeltaCursor | undefined;
  /** watch-5 */
  readonly caller: Caller;
}

type Shape = Exclude<WatchRunResponse["update"], { case: undefined }>;
type LiveShape = Extract<Shape, { case: "delta" | "replaced" }>;

export class WatchView {
  nextSequence = 0;
  hasEnded = false;
  /** The process that works on the run. */
  holder: string | undefined;
  readonly #request: WatchRequest;
  #fromSequence: number;
  #hasBegun = false;
  #committedTurns = 0;
  #cursor: DeltaCursor | undefined;
  #draft: Draft | undefined;
  #requestedAt: string | undefined;

  constructor(request: WatchRequest) {
    this.#request = request;
    this.#fromSequence = request.fromSequence === undefined ? Number.POSITIVE_INFINITY : Number(request.fromSequence);
    this.#cursor = request.cursor;
  }

  /** watch-1: an event that was shown before is passed over. */
  *event(record: Pick<LogRecord, "event" | "instance">, came?: WatchRunResponse): Generator<WatchRunResponse> {
    const { event: stored, instance } = record;
    if (stored.sequence < this.nextSequence) return;
    const missing = Math.max(this.nextSequence, this.#fromSequence);
    if (stored.sequence > 0 && this.nextSequence === 0) this.#requireBeginning(); // watch-11
    if (stored.sequence > missing) yield responseFrom(gapUpdate(BigInt(missing), BigInt(stored.sequence - 1))); // watch-11
    this.nextSequence = stored.sequence + 1;
    const isShown = stored.sequence >= this.#fromSequence;
    const step = this.#follow(stored.event, instance);
    if (step !== undefined && this.#request.includeDeltas && isShown) yield* this.#take(step);
    else if (stored.event.case === "turnCommitted") this.#cursor = step?.cursor;
    if (isShown) yield responseFrom({ case: "event", value: stored }, came);
  }

  /** The text of the turn that is not committed, as the log has it. */
  *draft(): Generator<WatchRunResponse> {
    if (!this.#request.includeDeltas || this.#draft === undefined) return;
    yield* this.#take(stepFromSnapshot(this.#cursor, replacedFromDraft(this.#draft), this.#committedTurns));
  }

  /** watch-7: once, after the first read of the log. */
  *begin(): Generator<WatchRunResponse> {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { runId, fromSequence } = this.#request;
    const next = BigInt(this.nextSequence);
    requireReached(`run ${runId}`, fromSequence ?? next, next);
    if (fromSequence !== undefined) return;
    this.#fromSequence = this.nextSequence;
    yield responseFrom(startUpdate(next));
  }

  /** `isGap`: the text so far has to be requested, once an attempt. */
  live(update: LiveShape, came: WatchRunResponse | undefined) {
    const step =
      update.case === "delta"
        ? stepFromDelta(this.#cursor, update.value, this.#committedTurns)
        : stepFromSnapshot(this.#cursor, update.value, this.#committedTurns);
    const place = `${update.value.turn} ${update.value.attempt}`;
    const isGap = step.isGap && this.#requestedAt !== place;
    if (step.isGap) this.#requestedAt = place;
    else if (step.shown.length > 0) this.#requestedAt = undefined;
    return { shown: this.#take(step, came), isGap };
  }

  /** Takes in a stored event; gives what it means for the text that the watcher has seen. */
  #follow(body: RunEvent["event"], instance: string): Step | undefined {
    switch (body.case) {
      case "accepted":
        requireOwner(body.value, this.#request.caller, `run ${this.#request.runId}`); // watch-5
        return undefined;
      case "claimed":
        this.holder = instance;
        this.#draft = undefined;
        return undefined;
      case "textCheckpoint":
        this.#draft = draftAfter(this.#draft, body.value);
        return undefined;
      case "parked":
        this.holder = undefined;
        return undefined;
      case "turnCommitted":
        this.#draft = undefined;
        this.#committedTurns = body.value.turn;
        return stepFromCommit(this.#cursor, body.value.turn, body.value.attempt, textOfItems(body.value.items));
      case "ended":
        this.hasEnded = true;
        return stepFromEnd(this.#cursor, this.#draft && replacedFromDraft(this.#draft), this.#committedTurns); // watch-8
      default:
        return undefined;
    }
  }

  *#take(step: Step, came?: WatchRunResponse): Generator<WatchRunResponse> {
    this.#cursor = step.cursor;
    for (const { kind, value } of step.shown) yield responseFrom({ case: kind, value } as Shape, came);
  }

  /** watch-11 */
  #requireBeginning(): void {
    const { runId, caller } = this.#request;
    if (isServiceItself(caller)) return;
    refuse("data_loss", `the beginning of run ${runId} is lost, and with it whose it is`, { reason: "RECORD_LOST" });
  }
}

/** watch-9 */
function responseFrom(update: Shape, came?: WatchRunResponse): WatchRunResponse {
  if (came?.update.value === update.value) return came;
  return create(WatchRunResponseSchema, { update });
}
