/**
 * What streams between two stored events, numbered within an attempt, so that a watcher knows a gap when it sees one.
 * Pieces of one kind that come within one beat travel together; the first one, for which a reader waits, goes at once.
 */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type RunDelta,
  RunDeltaSchema,
  type RunTextReplaced,
  RunTextReplacedSchema,
} from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { Piece } from "../../model/attempt/answer.ts";
import { scheduleFlush, unscheduleFlush } from "./flush-timer.ts";

type DeltaBody = NonNullable<MessageInitShape<typeof RunDeltaSchema>["delta"]>;

export type DeltaWriter = ReturnType<typeof createDeltaWriter>;

const batchCharacters = 1_024;

export function createDeltaWriter(place: { turn: number; attempt: number }, publish: (delta: RunDelta) => void) {
  let index = 0;
  let sentText = "";
  let isTextOnly = true;
  /** What waits: its first piece, and the text of all of them. */
  let waiting: Piece | undefined;
  let waitingText = "";

  /** Sends something at once: progress and logs of calls. */
  function tell(delta: DeltaBody): void {
    flush();
    send(delta);
  }

  function send(delta: DeltaBody): void {
    publish(create(RunDeltaSchema, { ...place, index, delta }));
    index += 1;
  }

  /** Sends what still waits. */
  function flush(): void {
    unscheduleFlush(flush);
    const piece = waiting;
    waiting = undefined;
    if (piece === undefined) return;
    if (piece.kind === "text") sentText += waitingText;
    else isTextOnly = false;
    send(bodyFrom(piece, waitingText));
  }

  /** A piece of what the model says. */
  function write(piece: Piece): void {
    if (waiting !== undefined && !isContinued(waiting, piece)) flush();
    waitingText = waiting === undefined ? piece.text : waitingText + piece.text;
    waiting ??= piece;
    if (index === 0 || waitingText.length >= batchCharacters) flush();
    else scheduleFlush(flush);
  }

  return {
    write,
    tell,
    flush,
    /** The text so far, for a watcher that missed some of it. */
    snapshot: (): RunTextReplaced =>
      create(RunTextReplacedSchema, { ...place, text: sentText, deltaCount: index, textOnly: isTextOnly }),
  };
}

function isContinued(before: Piece, piece: Piece): boolean {
  if (before.kind !== piece.kind) return false;
  return before.kind !== "arguments" || (piece.kind === "arguments" && before.callId === piece.callId);
}

function bodyFrom(piece: Piece, text: string): DeltaBody {
  if (piece.kind !== "arguments") return { case: piece.kind, value: text };
  const { callId, name } = piece;
  return { case: "arguments", value: { callId, name, text } };
}
