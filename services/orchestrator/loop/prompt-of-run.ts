import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { promptFromItems, promptFromTurns } from "../model/prompt.ts";
import { conversationFromState } from "../run/conversation.ts";
import type { RunState } from "../run/fold.ts";
import { itemsFromTurns } from "../run/view.ts";
import type { LoopContext } from "./context.ts";

/** What the model is asked with: the fold of the log, behind the instructions. */
export function promptOfRun(
  state: RunState,
  { agent, news, history }: Pick<LoopContext, "agent" | "news" | "history">,
): LanguageModelV4Prompt {
  const own = state.accepted.options?.instructions || agent.instructions;
  const instructions = [own, news.instructions].filter((text) => text !== "").join("\n\n");
  const { opening, turns, continuesEarlier } = conversationFromState(state);
  const items = continuesEarlier ? [...history, ...opening] : opening;
  const last = items.at(-1)?.item;
  // input that ends in the words of an assistant continues in the first turn: then the two are one message
  const isClosed =
    last?.case === "functionCallOutput" || (last?.case === "message" && last.value.role !== Role.ASSISTANT);
  if (isClosed) return [...promptFromItems(instructions, items), ...promptFromTurns(turns)];
  return promptFromItems(instructions, [...items, ...itemsFromTurns(turns)]);
}
