import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Limits, LimitsSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { RunLimits } from "../loop/limits.ts";
import type { RunState } from "../run/fold.ts";

export interface Caller {
  readonly limits: RunLimits;
  /** The run that calls; undefined for a call from outside any run. */
  readonly state: RunState | undefined;
}

/**
 * LOOP-17: what a called agent's run may use: what its offer says, inside what is left to the run that calls. What it used
 * counts there once it is done, so that calls in flight are all by which a budget can be exceeded.
 */
export function childLimits(
  offered: Limits | undefined,
  { limits, state }: Caller,
  timeLeftMs: number,
): MessageInitShape<typeof LimitsSchema> {
  const spentTokens = Number((state?.spent.inputTokens ?? 0n) + (state?.spent.outputTokens ?? 0n));
  const maxTokens = lower(Number(offered?.maxTokens ?? 0n), limits.maxTokens - spentTokens);
  const maxToolCalls = lower(offered?.maxToolCalls, limits.maxToolCalls - (state?.callCount ?? 0));
  const maxCost = lower(offered?.maxCost, limits.maxCost - (state?.spent.cost ?? 0));
  const deadlineMs = lower(offered?.deadlineMs, timeLeftMs);
  return {
    maxTurns: offered?.maxTurns ?? 0,
    maxParallelCalls: offered?.maxParallelCalls ?? 0,
    modelStallMs: offered?.modelStallMs ?? 0,
    ...(offered?.modelRetries !== undefined && { modelRetries: offered.modelRetries }),
    maxDepth: Math.max(0, Math.min(limits.maxDepth - 1, offered?.maxDepth ?? Number.POSITIVE_INFINITY)),
    ...(Number.isFinite(maxTokens) && { maxTokens: BigInt(Math.max(1, Math.floor(maxTokens))) }),
    ...(Number.isFinite(maxToolCalls) && { maxToolCalls: Math.max(1, maxToolCalls) }),
    ...(Number.isFinite(maxCost) && { maxCost: Math.max(Number.MIN_VALUE, maxCost) }),
    ...(Number.isFinite(deadlineMs) && { deadlineMs: Math.min(2 ** 32 - 1, Math.max(1, Math.floor(deadlineMs))) }),
  };
}

/** 0 and absent mean no limit of its own. */
function lower(own: number | undefined, left: number): number {
  return own ? Math.min(own, left) : left;
}
