/** Tokens that models used for the run, those of its sub-agents included, and what they cost. */
export interface Spent {
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
  readonly cost: number;
}

export const unspent: Spent = { inputTokens: 0n, outputTokens: 0n, cost: 0 };

/** With what was used, too. */
export function plus(spent: Spent, used: Spent | undefined): Spent {
  if (used === undefined) return spent;
  return {
    inputTokens: spent.inputTokens + used.inputTokens,
    outputTokens: spent.outputTokens + used.outputTokens,
    cost: spent.cost + used.cost,
  };
}
