/**
 * The part of a conversation that one run is, as a model reads it.
 *
 * V1  Once it was compacted, the summary stands for everything before: earlier runs, and the run's own turns before the
 *     compaction's sequence. What the run was given, and its later turns, stay word for word.
 * V2  A compaction names a commit, so that a call and its result are on the same side of it.
 */

import { create } from "@bufbuild/protobuf";
import { type Item, ItemSchema, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import type { RunState, Turn } from "./fold.ts";

export interface Conversation {
  /** What stands before the turns. */
  readonly opening: readonly Item[];
  readonly turns: readonly Turn[];
  /** Whether earlier runs belong before it: not when a summary stands for them. */
  readonly continuesEarlier: boolean;
}

export function conversationFromState({ compaction, accepted, inbox, turns }: RunState): Conversation {
  const given = [...(inbox?.items ?? []), ...accepted.input];
  if (compaction === undefined) return { opening: given, turns, continuesEarlier: true };
  const kept = turns.filter(({ sequence }) => sequence >= compaction.beforeSequence); // V2
  return { opening: [itemFromSummary(compaction.summary), ...given], turns: kept, continuesEarlier: false }; // V1
}

function itemFromSummary(summary: string): Item {
  const text = `[Summary of the conversation so far]\n${summary}`;
  return create(ItemSchema, { item: { case: "message", value: { role: Role.USER, text } } });
}
