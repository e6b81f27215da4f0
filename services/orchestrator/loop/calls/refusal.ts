import { type FunctionCall, RunMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { ruleOfBudget, ruleOfChoice, ruleOfCount } from "#runtime/rpc/run-bounds.ts";
import { parseBounded } from "#runtime/schema/json/json-size.ts";
import { turnForJson } from "#runtime/schema/json/json-turn.ts";
import { isDuplicateCallId } from "../../log/state/call-ids.ts";
import { namelessCall } from "../../model/providers/openai-compatible/call-deltas.ts";
import { boundsOf, type Place } from "../limits/budget.ts";
import { reasonsOfCutOff } from "../limits/stop-condition.ts";
import { faultOfArguments } from "../tools/function-tools.ts";
import type { Target, ToolTable } from "../tools/tool-table.ts";

export interface TurnRules extends Omit<Place, "call"> {
  readonly table: ToolTable;
  /** How many calls the run made before this turn; `spent` is what it had spent with it. */
  readonly callsBefore: number;
  readonly principal: string;
  /** How the answer ended that has the calls; it may have been cut off in the last of them. */
  readonly finishReason: string;
  /** calls-2: a process before this one may have made the call, by a list that had its tool. */
  readonly isRecovering?: boolean;
}

/**
 * Why a call is answered with an error instead of being executed or handed to the client; undefined when it goes on. The `index`
 * is that among the calls of its turn. The router judges what it is asked for by the same rules of the run once more.
 */
async function decideRefusal(call: FunctionCall, index: number, rules: TurnRules): Promise<string | undefined> {
  const { table, options, callsBefore, finishReason, isRecovering = false } = rules;
  const { callId, name, argumentsJson } = call;
  if (isDuplicateCallId(callId)) return "two calls of one turn had the same id: only the first was executed";
  if (isNameless(call, table)) return "the call names no tool";
  const target = table.find(name);
  const mayBeMade = isRecovering && target === undefined;
  const bounds = boundsOf({ ...rules, call: callsBefore + index + 1 });
  const choice = ruleOfChoice(bounds, (forced) => mayBeMade || table.isAmong([forced], name));
  if (choice !== undefined) return `tool "${name}" may not be called: ${choice}`;
  // otherwise the router says what is known of the name, by which rule it is refused, and which names are close
  const isNarrowed = options?.allowedTools !== undefined && !mayBeMade;
  if (isNarrowed && target === undefined) return `there is no tool "${name}"`;
  if (isNarrowed && !table.isAllowed(name)) return `tool "${name}" is not in the allowed_tools list`;
  const usedUp = ruleOfCount(bounds) ?? ruleOfBudget(bounds);
  if (usedUp !== undefined) return usedUp;
  const isCutOff = reasonsOfCutOff.has(finishReason);
  const isEmpty = isCutOff && noArguments.test(argumentsJson);
  const fault = isEmpty ? "the call has no arguments" : await faultOfWritten(call, target, rules.principal);
  return fault && isCutOff ? `${fault}: the answer was cut off (${finishReason})` : fault;
}

async function faultOfWritten(call: FunctionCall, target: Target | undefined, principal: string) {
  if (target?.kind === "function") return faultOfArguments(target.tool, call.argumentsJson, principal);
  await turnForJson(call.argumentsJson, { sender: principal });
  return faultOfJson(call);
}

function isNameless({ name }: FunctionCall, table: ToolTable): boolean {
  return name.trim() === "" || (name === namelessCall && table.find(name) === undefined);
}

/** Also what an answer that was cut off looks like that came to write nothing of a call's arguments. */
const noArguments = /^\s*(\{\s*\})?\s*$/;

/** The refusals among the calls of one turn, by call id. */
export async function decideRefusals(
  calls: readonly FunctionCall[],
  rules: TurnRules,
): Promise<ReadonlyMap<string, string>> {
  const refusals = new Map<string, string>();
  for (const [index, call] of calls.entries()) {
    const isLast = index === calls.length - 1;
    const refusal = await decideRefusal(call, index, { ...rules, finishReason: isLast ? rules.finishReason : "" });
    if (refusal !== undefined) refusals.set(call.callId, refusal);
  }
  return refusals;
}

/**
 * The calls of a turn that the client may answer as soon as the turn is committed. Calls that the run refuses are not among them: an
 * output that comes before the refusal is refused itself (`CALL_NOT_AWAITED`).
 */
export async function decideClientCalls(calls: readonly FunctionCall[], rules: TurnRules): Promise<string[]> {
  const mode = rules.options?.mode;
  if (mode === RunMode.SINGLE_TURN || mode === RunMode.RETURN_CALLS) return []; // the run ends with them
  const isClients = ({ name }: FunctionCall) => rules.table.find(name)?.kind === "function";
  if (!calls.some(isClients)) return [];
  const refusals = await decideRefusals(calls, rules);
  return calls.filter((call) => isClients(call) && !refusals.has(call.callId)).map(({ callId }) => callId);
}

/** The router holds arguments against its tools' schemas. */
function faultOfJson({ name, argumentsJson }: FunctionCall): string | undefined {
  if (argumentsJson.trim() === "") return undefined;
  try {
    parseBounded(argumentsJson);
    return undefined;
  } catch (error) {
    return `the arguments of "${name}" are not JSON: ${messageFromUnknown(error)}`;
  }
}
