import type { LanguageModelV4ToolChoice } from "@ai-sdk/provider";
import { type RunOptions, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import type { Answer } from "../../model/attempt/answer.ts";
import type { ToolTable } from "../tools/tool-table.ts";

/** LOOP-2: `required` and a forced tool hold for the first turn only, since a loop that repeats them never ends. */
export function toolChoiceOfTurn(
  options: RunOptions | undefined,
  turn: number,
  table: ToolTable,
): LanguageModelV4ToolChoice {
  const choice = options?.toolChoice?.choice;
  if (choice?.case === "mode" && choice.value === ToolChoiceMode.NONE) return { type: "none" };
  if (turn > 1) return { type: "auto" };
  if (choice?.case === "mode" && choice.value === ToolChoiceMode.REQUIRED) return { type: "required" };
  if (choice?.case === "forcedTool") return { type: "tool", toolName: table.modelNameOf(choice.value) ?? choice.value };
  return { type: "auto" };
}

export function meetsToolChoice(answer: Answer, choice: LanguageModelV4ToolChoice, table: ToolTable): boolean {
  const calls = answer.parts.filter((part) => part.kind === "call");
  if (choice.type === "required") return calls.length > 0;
  if (choice.type === "tool") return calls.some(({ name }) => table.modelNameOf(name) === choice.toolName);
  return true;
}
