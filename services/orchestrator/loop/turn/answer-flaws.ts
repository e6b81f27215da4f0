/**
 * Answers that are dropped and asked for once more: without words and calls, or against `tool_choice`.
 *
 * A second one fails the run (`empty_answer`, `tool_choice_unmet`). An empty answer after calls, from a model that means to stop, is
 * no flaw then: there is nothing to add. An answer that was cut off is not asked for again.
 */

import type { LanguageModelV4ToolChoice } from "@ai-sdk/provider";
import { RunEndReason } from "#gen/toolbus/run/v1/run_pb.ts";
import type { Answer } from "../../model/attempt/answer.ts";
import { reasonsOfCutOff } from "../limits/stop-condition.ts";
import type { ToolTable } from "../tools/tool-table.ts";
import { meetsToolChoice } from "./tool-choice.ts";

/** Why an answer is dropped and asked for once more; how the run fails when the next one is no better. */
export interface Flaw {
  readonly endReason: typeof RunEndReason.TOOL_CHOICE_UNMET | typeof RunEndReason.EMPTY_ANSWER;
  readonly message: string;
}

const disobedient: Flaw = {
  endReason: RunEndReason.TOOL_CHOICE_UNMET,
  message: "the model did not obey tool_choice, twice",
}; // LOOP-2

export function flawOfAnswer(answer: Answer, choice: LanguageModelV4ToolChoice, table: ToolTable): Flaw | undefined {
  if (!meetsToolChoice(answer, choice, table)) return disobedient;
  return isEmpty(answer) ? emptyFlaw(answer) : undefined;
}

/** A model whose calls have done what there was to do may have nothing to add, as long as it does not say that it goes on. */
export function mayStayEmpty({ endReason }: Flaw, { finishReason }: Answer, turn: number): boolean {
  return endReason === RunEndReason.EMPTY_ANSWER && finishReason === "stop" && turn > 1;
}

/** Neither words nor calls. One that was cut off ends the run with the reason for it: another one would be cut off as well. */
function isEmpty({ parts, finishReason }: Answer): boolean {
  if (reasonsOfCutOff.has(finishReason)) return false;
  return parts.every((part) => part.kind === "reasoning" || (part.kind === "text" && part.text.trim() === ""));
}

function emptyFlaw({ finishReason }: Answer): Flaw {
  const said = finishReason === "tool-calls" ? "announced calls and made none" : "answered without words and calls";
  return {
    endReason: RunEndReason.EMPTY_ANSWER,
    message: `the model ${said}, twice (it ended with "${finishReason}")`,
  };
}
