/**
 * Where a watcher stands between two stored events, and what it is to be shown (LOOP-10): what it has seen of a turn is
 * a prefix of the attempt that counts, or is followed by a reset.
 */

import { create } from "@bufbuild/protobuf";
import { type RunDelta, type RunReset, RunResetSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";

export interface DeltaCursor {
  readonly turn: number;
  readonly attempt: number;
  /** Number of the next delta that continues what was seen. */
  readonly next: number;
}

export type Shown =
  | { readonly kind: "delta"; readonly value: RunDelta }
  | { readonly kind: "reset"; readonly value: RunReset };

export interface Step {
  readonly cursor: DeltaCursor | undefined;
  readonly shown: readonly Shown[];
  /** Something was missed: the text so far has to be asked for. */
  readonly isGap: boolean;
}

/** What a delta means for a watcher that has seen `committedTurns` turns whole. */
export function stepFromDelta(cursor: DeltaCursor | undefined, delta: RunDelta, committedTurns: number): Step {
  const { turn, attempt, n } = delta;
  const stay: Step = { cursor, shown: [], isGap: false };
  if (delta.delta.case === "progress" || delta.delta.case === "log")
    return turn === committedTurns ? { ...stay, shown: [{ kind: "delta", value: delta }] } : stay;
  if (turn <= committedTurns || isOlder(delta, cursor)) return stay;
  const isSameAttempt = cursor?.turn === turn && cursor.attempt === attempt;
  const next = isSameAttempt ? cursor.next : 0;
  if (n < next) return stay;
  if (n > next) return { ...stay, isGap: true };
  const shown: Shown[] = [{ kind: "delta", value: delta }];
  if (!isSameAttempt && cursor?.turn === turn) shown.unshift({ kind: "reset", value: emptyReset(turn, attempt) });
  return { cursor: { turn, attempt, next: n + 1 }, shown, isGap: false };
}

/** What the text so far means for a watcher. */
export function stepFromSnapshot(cursor: DeltaCursor | undefined, reset: RunReset, committedTurns: number): Step {
  const { turn, attempt, deltas } = reset;
  const stay: Step = { cursor, shown: [], isGap: false };
  if (turn <= committedTurns || isOlder(reset, cursor)) return stay;
  const isSameAttempt = cursor?.turn === turn && cursor.attempt === attempt;
  if (isSameAttempt && cursor.next >= deltas) return stay;
  if (cursor?.turn !== turn && deltas === 0) return stay;
  return { cursor: { turn, attempt, next: deltas }, shown: [{ kind: "reset", value: reset }], isGap: false };
}

/** What a committed turn means: text of another attempt, shown before, is replaced. Who stands in a later turn stays there. */
export function stepFromCommit(cursor: DeltaCursor | undefined, turn: number, attempt: number, text: string): Step {
  if (cursor !== undefined && cursor.turn > turn) return { cursor, shown: [], isGap: false };
  if (cursor?.turn !== turn || cursor.attempt === attempt) return { cursor: undefined, shown: [], isGap: false };
  const reset = create(RunResetSchema, { turn, attempt, text });
  return { cursor: undefined, shown: [{ kind: "reset", value: reset }], isGap: false };
}

/** What an end in mid-turn means: of what was shown of the turn, the text that the log has of it counts, and no call. */
export function stepFromEnd(
  cursor: DeltaCursor | undefined,
  draft: RunReset | undefined,
  committedTurns: number,
): Step {
  if (cursor === undefined || cursor.turn <= committedTurns) return { cursor: undefined, shown: [], isGap: false };
  const reset = draft ?? emptyReset(cursor.turn, cursor.attempt);
  return { cursor: undefined, shown: [{ kind: "reset", value: reset }], isGap: false };
}

function isOlder(place: { turn: number; attempt: number }, cursor: DeltaCursor | undefined): boolean {
  if (cursor === undefined) return false;
  return place.turn < cursor.turn || (place.turn === cursor.turn && place.attempt < cursor.attempt);
}

function emptyReset(turn: number, attempt: number): RunReset {
  return create(RunResetSchema, { turn, attempt });
}
