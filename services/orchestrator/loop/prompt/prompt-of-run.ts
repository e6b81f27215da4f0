import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { type Item, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { itemsFromTurns, openingItems } from "../../log/state/view.ts";
import { begunByUser, promptFromItems, promptFromTurns } from "../../model/prompt/prompt.ts";
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
  const last = items.at(-1)?.item;
  // input that ends in the words of an assistant continues in the first turn: then the two are one message
  const isClosed =
    last?.case === "functionCallOutput" || (last?.case === "message" && last.value.role !== Role.ASSISTANT);
  if (isClosed) return begunByUser(promptOfOpening(state, history, instructions, items).concat(promptFromTurns(turns)));
  return begunByUser(promptFromItems(instructions, [...items, ...itemsFromTurns(turns)]));
}

interface Opening {
  readonly state: Pick<FoldedRun, "inbox" | "compaction">;
  readonly instructions: string;
  readonly prompt: LanguageModelV4Prompt;
}

const openingByHistory = new WeakMap<readonly Item[], Opening>();

/** What stands before the first turn is the same for all turns between two compactions: it is put into words once. */
function promptOfOpening(
  state: FoldedRun,
  history: readonly Item[],
  instructions: string,
  items: readonly Item[],
): LanguageModelV4Prompt {
  const { inbox, compaction } = state;
  const made = openingByHistory.get(history);
  const isSame = made?.state.inbox === inbox && made?.state.compaction === compaction;
  if (made !== undefined && isSame && made.instructions === instructions) return made.prompt;
  const prompt = promptFromItems(instructions, items);
  openingByHistory.set(history, { state: { inbox, compaction }, instructions, prompt });
  return prompt;
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
