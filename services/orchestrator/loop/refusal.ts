import { create } from "@bufbuild/protobuf";
import type { FunctionCall, RunOptions } from "#gen/toolbus/run/v1/run_pb.ts";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { isDuplicateCallId } from "./call-ids.ts";
import type { ToolTable } from "./tool-table.ts";

export interface CallRules {
  readonly table: ToolTable;
  readonly options: RunOptions | undefined;
  /** Whether the run's budget of calls is used up before this call. */
  readonly isOverBudget: boolean;
}

/** Why a call is answered with an error instead of being executed or handed to the client; undefined when it goes on. */
export function decideRefusal(call: FunctionCall, rules: CallRules): string | undefined {
  const { table, options, isOverBudget } = rules;
  const choice = options?.toolChoice?.choice;
  if (isDuplicateCallId(call.callId)) return "two calls of one turn had the same id: only the first was executed";
  if (choice?.case === "mode" && choice.value === "none")
    return `tool "${call.name}" was called under tool_choice "none"`;
  const isNarrowed = (options?.allowedTools.length ?? 0) > 0;
  // otherwise the router says what is known of the name, by which rule it is refused, and which names are close
  if (isNarrowed && table.find(call.name) === undefined) return `there is no tool "${call.name}"`;
  if (!table.isAllowed(call.name)) return `tool "${call.name}" is not in the allowed_tools list`;
  if (isOverBudget) return "the run's limit of tool calls (max_tool_calls) is used up";
  return faultOfArguments(call);
}

function faultOfArguments({ name, argumentsJson }: FunctionCall): string | undefined {
  if (argumentsJson.trim() === "") return undefined;
  try {
    JSON.parse(argumentsJson);
    return undefined;
  } catch (error) {
    return `the arguments of "${name}" are not JSON: ${messageFromUnknown(error)}`;
  }
}

/** KIND-4: an error of a tool is data, in one form. */
export function errorResult(text: string): ToolResult {
  return create(ToolResultSchema, { outputJson: JSON.stringify({ error: text }), isError: true });
}
