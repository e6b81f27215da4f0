/**
 * The text of a turn that is not committed, as far as its run's log has it (LOOP-10).
 *
 * draft-1  Checkpoints of an attempt join: each has what the one before lacks, so that the log holds each word once, and once more
 *     in the turn. One that does not join its attempt's draft is passed over.
 * draft-2  An attempt's first checkpoint takes the place of a former attempt's draft; a commit and a claim put an end to it.
 * draft-3  Checkpoints of a run take a floor and a share of what its items take: a draft that has no room left stays behind what
 *     is said, and is a prefix of it all the same.
 * draft-4  A run that ends in mid-turn keeps what was said as an incomplete item. What stands before its end takes the room that it
 *     needs, as it takes the place of the turn's commit.
 * draft-5  What an attempt used counts once: with its turn, as it broke off, or, when its process was killed, as a claim finds its
 *     draft. So a kill costs a budget no more than one request, and what its model said since the last checkpoint.
 */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type RunTextReplaced, RunTextReplacedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { Item, TextCheckpoint, TextCheckpointSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { textOfContent } from "#runtime/content/text.ts";

export type Draft = Readonly<Pick<TextCheckpoint, "turn" | "attempt" | "deltaCount" | "text">>;

/** How much of a log is what, in characters. */
export interface LogWeight {
  readonly items: number;
  readonly checkpoints: number;
}

const floorCharacters = 32 * 1_024;
const shareOfItems = 0.15;
/** What a checkpoint takes besides its text. */
const envelopeCharacters = 256;

export function draftAfter(draft: Draft | undefined, checkpoint: TextCheckpoint): Draft | undefined {
  const { turn, attempt, deltaCount, text, firstDelta } = checkpoint;
  if (firstDelta === 0) return { turn, attempt, deltaCount, text }; // draft-2
  const joins = isOf(draft, checkpoint) && draft.deltaCount === firstDelta;
  return joins ? { turn, attempt, deltaCount, text: draft.text + text } : draft; // draft-1
}

export interface Place {
  readonly turn: number;
  readonly attempt: number;
}

/** draft-5: the draft of a process that was killed, as another claims the run; unless what it used was counted. */
export function lostDraft(draft: Draft | undefined, counted: Place | undefined): Draft | undefined {
  return counted !== undefined && isOf(draft, counted) ? undefined : draft;
}

/** What to append so that the log has the text so far; nothing when it has it, or has no room for it. */
export function nextCheckpoint(
  { draft, weight }: { draft: Draft | undefined; weight: LogWeight },
  soFar: RunTextReplaced,
): MessageInitShape<typeof TextCheckpointSchema> | undefined {
  const checkpoint = lastCheckpoint(draft, soFar);
  const room = floorCharacters + weight.items * shareOfItems - weight.checkpoints; // draft-3
  return checkpoint && checkpoint.text.length + envelopeCharacters <= room ? checkpoint : undefined;
}

/** draft-4: all that the log lacks; nothing when it has it. */
export function lastCheckpoint(draft: Draft | undefined, soFar: RunTextReplaced) {
  const known = isOf(draft, soFar) ? draft : undefined;
  const text = soFar.text.slice(known?.text.length ?? 0);
  if (text === "") return undefined;
  const { turn, attempt, deltaCount } = soFar;
  return { turn, attempt, deltaCount, text, firstDelta: known?.deltaCount ?? 0 };
}

/** A draft as watchers get it. */
export function replacedFromDraft({ turn, attempt, deltaCount, text }: Draft): RunTextReplaced {
  return create(RunTextReplacedSchema, { turn, attempt, deltaCount, text });
}

export function weightOfCheckpoint({ text }: TextCheckpoint): number {
  return text.length + envelopeCharacters;
}

export function weightOfItems(items: readonly Item[]): number {
  return items.reduce((sum, { item }) => {
    if (item.case === "message") return sum + textOfContent(item.value.content).length;
    if (item.case === "reasoning") return sum + item.value.text.length;
    if (item.case === "functionCall") return sum + item.value.argumentsJson.length;
    return sum + (item.value?.result?.outputJson.length ?? 0);
  }, 0);
}

function isOf(draft: Draft | undefined, place: Place): draft is Draft {
  return draft?.turn === place.turn && draft.attempt === place.attempt;
}
