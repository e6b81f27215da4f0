import type { Usage } from "#gen/toolbus/tool/v1/usage_pb.ts";
import { type Amount, plusAmount, type Total } from "#runtime/money/money.ts";

/** Tokens that models used for the run, those of its sub-agents included, and what they cost. */
export interface Spent {
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
  readonly cost: Total;
}

export const unspent: Spent = { inputTokens: 0n, outputTokens: 0n, cost: undefined };

/** What one request to a model used, or one call. */
export type Used = Pick<Usage, "inputTokens" | "outputTokens"> & { readonly cost?: Amount | undefined };

/** With what was used, too. */
export function plus(spent: Spent, used: Used | undefined): Spent {
  if (used === undefined) return spent;
  return {
    inputTokens: spent.inputTokens + used.inputTokens,
    outputTokens: spent.outputTokens + used.outputTokens,
    cost: plusAmount(spent.cost, used.cost),
  };
}
