import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Limits, LimitsSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { RunBounds } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import { lowerAmount } from "#runtime/money/money.ts";
import { ruleOfBudget } from "#runtime/rpc/run-bounds.ts";
import { filled } from "#runtime/schema/json-object.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { unspent } from "../../log/state/spent.ts";
import { faultOfBudget, leftOf } from "../../loop/limits/budget.ts";
import type { RunLimits } from "../../loop/limits/limits.ts";

export interface Caller {
  readonly limits: RunLimits;
  /** The run that calls; undefined for a call from outside any run. */
  readonly state: FoldedRun | undefined;
  /** What the call itself says is left, which may be less than what the run's log shows. */
  readonly bounds?: RunBounds | undefined;
}

/** Why a called agent cannot begin at all. */
export function faultOfCaller({ limits, state, bounds }: Caller): string | undefined {
  if (limits.maxDepth < 1) return "agents may not call each other any deeper (max_depth)";
  return faultOfBudget(state?.spent ?? unspent, limits) ?? (bounds && ruleOfBudget(bounds));
}

/** How many calls a called agent's run may make; infinite where nothing limits it. */
export function callsLeft({ limits, state, bounds }: Caller): number {
  const told = bounds?.maxToolCalls === undefined ? Number.POSITIVE_INFINITY : bounds.maxToolCalls - bounds.call;
  return Math.max(0, Math.min(limits.maxToolCalls - (state?.callCount ?? 0), told));
}

/**
 * LOOP-17: what a called agent's run may use: what its offer says, inside what is left to the run that calls. What it used
 * counts there once it is done, so that calls in flight are all by which a budget can be exceeded.
 */
export function childLimits(
  offered: Limits | undefined,
  caller: Caller,
  timeLeftMs: number,
): MessageInitShape<typeof LimitsSchema> {
  const { limits, state, bounds } = caller;
  const left = leftOf(state?.spent ?? unspent, limits);
  const toldTokens = bounds?.tokensLeft === undefined ? left.tokens : Number(bounds.tokensLeft);
  const maxTokens = lower(
    offered?.maxTokens === undefined ? undefined : Number(offered.maxTokens),
    Math.min(left.tokens, toldTokens),
  );
  const maxToolCalls = lower(offered?.maxToolCalls, callsLeft(caller));
  const maxCost = lowerAmount(lowerAmount(left.cost, bounds?.costLeft), offered?.maxCost);
  const deadlineMs = lower(msFromDuration(offered?.timeout), timeLeftMs);
  const { maxTurns, maxParallelCalls, modelStallTimeout, modelRetries, stopAtTools } = offered ?? {};
  return {
    ...filled({ maxTurns, maxParallelCalls, modelStallTimeout, modelRetries, stopAtTools }),
    maxDepth: Math.max(0, Math.min(limits.maxDepth - 1, offered?.maxDepth ?? Number.POSITIVE_INFINITY)),
    ...(Number.isFinite(maxTokens) && { maxTokens: BigInt(Math.max(1, Math.floor(maxTokens))) }),
    ...(Number.isFinite(maxToolCalls) && { maxToolCalls }),
    ...(maxCost && { maxCost: { currencyCode: maxCost.currencyCode, micros: maxCost.micros || 1n } }),
    ...(Number.isFinite(deadlineMs) && { timeout: durationFromMs(Math.max(1, Math.floor(deadlineMs))) }),
  };
}

function lower(own: number | undefined, left: number): number {
  return own === undefined ? left : Math.min(own, left);
}
