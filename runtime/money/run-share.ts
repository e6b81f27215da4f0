import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { RunContext } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import type { Usage } from "#gen/toolbus/tool/v1/usage_pb.ts";
import { amountLeft, plusAmount, type Total, toldAmount } from "#runtime/money/money.ts";
import { encodeRunContext } from "#runtime/rpc/run-context.ts";

/*
 * What a hosted tool does by way of the service is done on behalf of the run that called it, inside what that run leaves to the
 * call, and counts there: the router and the orchestrator hold each step to it, and the call's result tells the sum.
 */

/** What the run that calls leaves to a call, and allows. */
export type RunShare = Pick<RunContext, "bounds" | "allowedTools">;

/** What was done on a call's behalf so far. */
export interface Used {
  calls: number;
  inputTokens: bigint;
  outputTokens: bigint;
  cost: Total;
}

export function nothingUsed(): Used {
  return { calls: 0, inputTokens: 0n, outputTokens: 0n, cost: undefined };
}

export function addUsage(used: Used, usage: Omit<Usage, "$typeName"> | undefined): void {
  if (usage === undefined) return;
  used.inputTokens += usage.inputTokens;
  used.outputTokens += usage.outputTokens;
  used.cost = plusAmount(used.cost, usage.cost);
}

/** What the call's result tells the run; amounts that have no sum are all that the run left to the call. */
export function toldUse({ bounds }: Pick<RunShare, "bounds">, { cost, ...counts }: Used) {
  const told = toldAmount(cost, bounds?.costLeft);
  return { ...counts, ...(told && { cost: told }) };
}

export type ToldUse = ReturnType<typeof toldUse>;

/** What the next step may use; without a bound of the run there is none. */
function leftAfter({ bounds }: RunShare, used: Used) {
  const { tokensLeft, costLeft } = bounds ?? {};
  const tokens = used.inputTokens + used.outputTokens;
  return {
    ...(tokensLeft !== undefined && { tokensLeft: tokensLeft > tokens ? tokensLeft - tokens : 0n }),
    ...(costLeft !== undefined && { costLeft: amountLeft(costLeft, used.cost) }),
  };
}

/** What the router is told with a call; `used` counts it already. Which tool a turn must call is nothing to it. */
export function shareOfCall(share: RunShare, used: Used) {
  const { bounds, allowedTools } = share;
  if (bounds === undefined) return { runContext: encodeRunContext({ allowedTools }) };
  const { turn, maxTurns, maxToolCalls } = bounds;
  const place = { turn, maxTurns, maxToolCalls, call: bounds.call + used.calls };
  return { runContext: encodeRunContext({ allowedTools, bounds: { ...place, ...leftAfter(share, used) } }) };
}

/** The limits of a run that a call starts; undefined when nothing is left that it could use. */
export function limitsOfRun(share: RunShare, used: Used, deadlineMs: number) {
  const { tokensLeft, costLeft } = leftAfter(share, used);
  if (tokensLeft === 0n || costLeft?.micros === 0n) return undefined;
  return {
    timeout: durationFromMs(Math.max(1, Math.floor(deadlineMs - Date.now()))),
    ...(tokensLeft !== undefined && { maxTokens: tokensLeft }),
    ...(costLeft !== undefined && { maxCost: costLeft }),
  };
}
