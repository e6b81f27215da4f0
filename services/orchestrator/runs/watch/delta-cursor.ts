/**
 * Where a watcher stands between two stored events, and what it is to be shown (LOOP-10): what it has seen of a turn is
 * a prefix of the attempt that counts, or is followed by a reset.
 */

import { create } from "@bufbuild/protobuf";
import { type RunDelta, type RunTextReplaced, RunTextReplacedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";

export interface DeltaCursor {
  readonly turn: number;
  readonly attempt: number;
  /** Number of the next delta that continues what was seen. */
  readonly next: number;
}

export type Shown =
  | { readonly kind: "delta"; readonly value: RunDelta }
  | { readonly kind: "replaced"; readonly value: RunTextReplaced };

export interface Step {
  readonly cursor: DeltaCursor | undefined;
  readonly shown: readonly Shown[];
  /** Something was missed: the text so far has to be asked for. */
  readonly isGap: boolean;
}

/** What a delta means for a watcher that has seen `committedTurns` turns whole. */
export function stepFromDelta(cursor: DeltaCursor | undefined, delta: RunDelta, committedTurns: number): Step {
  const { turn, attempt, index } = delta;
  const stay: Step = { cursor, shown: [], isGap: false };
  if (delta.delta.case === "progress" || delta.delta.case === "log")
    return turn === committedTurns ? { ...stay, shown: [{ kind: "delta", value: delta }] } : stay;
  if (turn <= committedTurns || isOlder(delta, cursor)) return stay;
  const isSameAttempt = cursor?.turn === turn && cursor.attempt === attempt;
  const next = isSameAttempt ? cursor.next : 0;
  if (index < next) return stay;
  if (index > next) return { ...stay, isGap: true };
  const shown: Shown[] = [{ kind: "delta", value: delta }];
  if (!isSameAttempt && cursor?.turn === turn) shown.unshift({ kind: "replaced", value: emptyText(turn, attempt) });
  return { cursor: { turn, attempt, next: index + 1 }, shown, isGap: false };
}

/** What the text so far means for a watcher. */
export function stepFromSnapshot(
  cursor: DeltaCursor | undefined,
  replaced: RunTextReplaced,
  committedTurns: number,
): Step {
  const { turn, attempt, deltaCount } = replaced;
  const stay: Step = { cursor, shown: [], isGap: false };
  if (turn <= committedTurns || isOlder(replaced, cursor)) return stay;
  const isSameAttempt = cursor?.turn === turn && cursor.attempt === attempt;
  if (isSameAttempt && cursor.next >= deltaCount) return stay;
  if (cursor?.turn !== turn && deltaCount === 0) return stay;
  return { cursor: { turn, attempt, next: deltaCount }, shown: [{ kind: "replaced", value: replaced }], isGap: false };
}

/** What a committed turn means: text of another attempt, shown before, is replaced. Who stands in a later turn stays there. */
export function stepFromCommit(cursor: DeltaCursor | undefined, turn: number, attempt: number, text: string): Step {
  if (cursor !== undefined && cursor.turn > turn) return { cursor, shown: [], isGap: false };
  if (cursor?.turn !== turn || cursor.attempt === attempt) return { cursor: undefined, shown: [], isGap: false };
  const replaced = create(RunTextReplacedSchema, { turn, attempt, text });
  return { cursor: undefined, shown: [{ kind: "replaced", value: replaced }], isGap: false };
}

/** What an end in mid-turn means: of what was shown of the turn, the text that the log has of it counts, and no call. */
export function stepFromEnd(
  cursor: DeltaCursor | undefined,
  draft: RunTextReplaced | undefined,
  committedTurns: number,
): Step {
  if (cursor === undefined || cursor.turn <= committedTurns) return { cursor: undefined, shown: [], isGap: false };
  const replaced = draft ?? emptyText(cursor.turn, cursor.attempt);
  return { cursor: undefined, shown: [{ kind: "replaced", value: replaced }], isGap: false };
}

function isOlder(place: { turn: number; attempt: number }, cursor: DeltaCursor | undefined): boolean {
  if (cursor === undefined) return false;
  return place.turn < cursor.turn || (place.turn === cursor.turn && place.attempt < cursor.attempt);
}

function emptyText(turn: number, attempt: number): RunTextReplaced {
  return create(RunTextReplacedSchema, { turn, attempt });
}
