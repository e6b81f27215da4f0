import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import type { Item } from "#gen/toolbus/run/v1/run_pb.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { itemsFromTurns, openingItems } from "../../log/state/view.ts";
import { begunByUser, promptFromItems } from "../../model/prompt/prompt.ts";
import type { LoopContext } from "../context.ts";
import type { ToolTable } from "../tools/tool-table.ts";
import { conversationFromState } from "./conversation.ts";

/** What the model is asked with: the fold of the log, behind the instructions. */
export function promptOfRun(
  state: FoldedRun,
  { agent, inbox, history }: Pick<LoopContext, "agent" | "inbox" | "history">,
  { sourceInstructions, isBuiltIn }: Pick<ToolTable, "sourceInstructions" | "isBuiltIn">,
): LanguageModelV4Prompt {
  const { instructions: replacing, furtherInstructions = "" } = state.accepted.options ?? {};
  const own = replacing || agent.instructions;
  const told = inbox.instructions.filter(({ tools }) => tools.length === 0 || tools.some(isBuiltIn));
  const fromSpaces = told
    .map(({ text }) => text)
    .join("")
    .trim();
  const instructions = [own, sourceInstructions, fromSpaces, furtherInstructions]
    .filter((text) => text !== "")
    .join("\n\n");
  const { opening, turns, continuesEarlier } = conversationFromState(state);
  const items = continuesEarlier ? [...history, ...opening] : opening;
  return begunByUser(promptFromItems(instructions, [...items, ...itemsFromTurns(turns)]));
}

const callIdsByHistory = new WeakMap<readonly Item[], ReadonlySet<string>>();

/** The ids that calls have in the prompt before a run's first turn: no call of the run may have one of them. */
export function callIdsBefore(state: FoldedRun, history: readonly Item[]): ReadonlySet<string> {
  return getOrInsertComputed(callIdsByHistory, history, () => {
    const prompt = promptFromItems("", [...history, ...openingItems(state)]);
    const ids = prompt.flatMap(({ role, content }) =>
      role === "assistant" ? content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : [])) : [],
    );
    return new Set(ids);
  });
}
