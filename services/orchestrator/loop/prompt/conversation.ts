/**
 * The part of a conversation that one run is, as a model reads it.
 *
 * conversation-1  Once it was compacted, the summary stands for everything before: earlier runs, and the run's own turns before the
 *     compaction's sequence. What the run was given, and its later turns, stay word for word.
 * conversation-2  A compaction names a commit, so that a call and its result are on the same side of it.
 * conversation-3  After a switch of the session's agent only what users and agents said is left of it (ORCH-1): what came from the former
 *     agent's inbox, its instructions and its summaries, which may tell of results, are no part of that.
 */

import { create } from "@bufbuild/protobuf";
import { type Item, ItemSchema, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { textOfContent } from "#runtime/content/text.ts";
import type { FoldedRun, Turn } from "../../log/state/fold.ts";
import { itemsCutOff, openingItems, userItem } from "../../log/state/view.ts";
import { resultInWords } from "../../model/prompt/prompt-parts.ts";

export interface Conversation {
  /** What stands before the turns. */
  readonly opening: readonly Item[];
  readonly turns: readonly Turn[];
  /** Whether earlier runs belong before it: not when a summary stands for them. */
  readonly continuesEarlier: boolean;
}

export function conversationFromState(state: FoldedRun): Conversation {
  const { compaction, turns } = state;
  if (compaction === undefined) return { opening: openingItems(state), turns, continuesEarlier: true };
  const kept = turns.filter(({ sequence }) => sequence >= compaction.beforeSequence); // conversation-2
  const opening = [
    userItem(`[Summary of the conversation so far]\n${compaction.summary}`),
    ...givenAfterSummary(state),
  ];
  return { opening, turns: kept, continuesEarlier: false }; // conversation-1
}

/** An output that answers a call of an earlier run becomes text once a summary stands for the call. */
function givenAfterSummary({ accepted, inbox }: FoldedRun): Item[] {
  const input = accepted.input.flatMap((item) => {
    if (item.item.case !== "functionCallOutput") return item;
    const { callId, result } = item.item.value;
    return result === undefined ? [] : userItem(resultInWords(callId, result)); // else it repeats what was summarized
  });
  return [...(inbox?.items ?? []), ...input];
}

/** conversation-3: what was said in a run, as it is shown to an agent; what another agent said is marked as such. */
export function wordsFromState(state: FoldedRun, toAgent: string): Item[] {
  const { accepted, turns } = state;
  const items = [...accepted.input, ...turns.flatMap(({ committed }) => committed.items), ...itemsCutOff(state)];
  return items.flatMap(({ item }) => {
    if (item.case !== "message") return [];
    const { role, content } = item.value;
    const text = textOfContent(content);
    if (text.trim() === "") return [];
    if (role === Role.USER) return [userItem(text)];
    if (role !== Role.ASSISTANT) return [];
    return accepted.agent === toAgent
      ? [create(ItemSchema, { item: { case: "message", value: { role, content } } })]
      : [userItem(`[Agent ${accepted.agent} said]\n${text}`)];
  });
}
