/**
 * What a run leaves to a call: one decision for the loop, the router and whoever calls on a call's behalf, in one vocabulary. Each gives
 * the rule that refuses the call, undefined if none does.
 */

import { ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";

/** As `RunBounds` has it; what is absent is no limit. */
export interface Bounds {
  readonly turn?: number;
  readonly maxTurns?: number | undefined;
  readonly call?: number;
  readonly maxToolCalls?: number | undefined;
  readonly toolChoice?: ToolChoiceMode;
  readonly forcedTool?: string;
  readonly tokensLeft?: bigint | undefined;
  readonly costLeft?: { readonly micros: bigint } | undefined;
}

/** LOOP-2. `isForced` says whether the call is one of the tool that is named. */
export function ruleOfChoice(
  { toolChoice, forcedTool = "" }: Bounds,
  isForced: (forcedTool: string) => boolean,
): string | undefined {
  if (toolChoice === ToolChoiceMode.NONE) return 'tool_choice is "none"';
  return forcedTool === "" || isForced(forcedTool) ? undefined : `tool_choice forces ${JSON.stringify(forcedTool)}`;
}

export const CALLS_USED_UP = "the run's limit of tool calls (max_tool_calls) is used up";

/** LOOP-1: which turn and which call of the run it is. */
export function ruleOfCount({ turn = 0, maxTurns, call = 0, maxToolCalls }: Bounds): string | undefined {
  if (maxTurns !== undefined && turn > maxTurns) return "the run's turns (max_turns) are used up";
  return maxToolCalls !== undefined && call > maxToolCalls ? CALLS_USED_UP : undefined;
}

/** LOOP-12 */
export function ruleOfBudget({ tokensLeft, costLeft }: Bounds): string | undefined {
  if (tokensLeft === 0n) return "the run's tokens (max_tokens) are used up";
  return costLeft !== undefined && costLeft.micros <= 0n ? "what the run may cost (max_cost) is used up" : undefined;
}
