import { type FunctionCall, RunMode, type RunOptions, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { isDuplicateCallId } from "../../log/state/call-ids.ts";
import type { Spent } from "../../log/state/spent.ts";
import { namelessCall } from "../../model/providers/nameless-calls.ts";
import { faultOfBudget } from "../limits/budget.ts";
import type { RunLimits } from "../limits/limits.ts";
import { faultOfArguments } from "../tools/function-tools.ts";
import type { ToolTable } from "../tools/tool-table.ts";

export interface CallRules {
  readonly table: ToolTable;
  readonly options: RunOptions | undefined;
  readonly turn: number;
  /** Which of the run's budgets is used up before this call, in words. */
  readonly usedUp: string | undefined;
}

/** Why a call is answered with an error instead of being executed or handed to the client; undefined when it goes on. */
export function decideRefusal(call: FunctionCall, rules: CallRules): string | undefined {
  const { table, options, turn, usedUp } = rules;
  const choice = options?.toolChoice?.choice;
  if (isDuplicateCallId(call.callId)) return "two calls of one turn had the same id: only the first was executed";
  if (isNameless(call, table)) return "the call names no tool";
  if (choice?.case === "mode" && choice.value === ToolChoiceMode.NONE)
    return `tool "${call.name}" was called under tool_choice "none"`;
  if (choice?.case === "forcedTool" && turn === 1 && !isSameTool(table, call.name, choice.value))
    return `tool "${call.name}" was called where tool_choice forces "${choice.value}"`;
  const isNarrowed = options?.allowedTools !== undefined;
  // otherwise the router says what is known of the name, by which rule it is refused, and which names are close
  if (isNarrowed && table.find(call.name) === undefined) return `there is no tool "${call.name}"`;
  if (!table.isAllowed(call.name)) return `tool "${call.name}" is not in the allowed_tools list`;
  if (usedUp !== undefined) return usedUp;
  const target = table.find(call.name);
  return target?.kind === "function" ? faultOfArguments(target.tool, call.argumentsJson) : faultOfJson(call);
}

function isNameless({ name }: FunctionCall, table: ToolTable): boolean {
  return name.trim() === "" || (name === namelessCall && table.find(name) === undefined);
}

function isSameTool(table: ToolTable, called: string, forced: string): boolean {
  return called === forced || table.modelNameOf(called) === table.modelNameOf(forced);
}

export interface TurnRules extends Omit<CallRules, "usedUp"> {
  /** How many calls the run made before this turn, and what it had spent with it. */
  readonly callsBefore: number;
  readonly spent: Spent;
  readonly limits: RunLimits;
}

/** The refusals among the calls of one turn, by call id. */
export function decideRefusals(calls: readonly FunctionCall[], rules: TurnRules): ReadonlyMap<string, string> {
  const { callsBefore, spent, limits } = rules;
  const isSpent = faultOfBudget(spent, limits);
  const refusals = new Map<string, string>();
  for (const [index, call] of calls.entries()) {
    const isOver = callsBefore + index >= limits.maxToolCalls;
    const usedUp = isOver ? "the run's limit of tool calls (max_tool_calls) is used up" : isSpent;
    const refusal = decideRefusal(call, { ...rules, usedUp });
    if (refusal !== undefined) refusals.set(call.callId, refusal);
  }
  return refusals;
}

/**
 * The calls of a turn that the client may answer as soon as the turn is committed. Calls that the run refuses are not among them: an
 * output that comes before the refusal is refused itself (`CALL_NOT_AWAITED`).
 */
export function decideClientCalls(calls: readonly FunctionCall[], rules: TurnRules): string[] {
  if (rules.options?.mode === RunMode.SINGLE_TURN) return []; // the run ends with the turn
  const isClients = ({ name }: FunctionCall) => rules.table.find(name)?.kind === "function";
  if (!calls.some(isClients)) return [];
  const refusals = decideRefusals(calls, rules);
  return calls.filter((call) => isClients(call) && !refusals.has(call.callId)).map(({ callId }) => callId);
}

/** The router holds arguments against its tools' schemas. */
function faultOfJson({ name, argumentsJson }: FunctionCall): string | undefined {
  if (argumentsJson.trim() === "") return undefined;
  try {
    JSON.parse(argumentsJson);
    return undefined;
  } catch (error) {
    return `the arguments of "${name}" are not JSON: ${messageFromUnknown(error)}`;
  }
}
