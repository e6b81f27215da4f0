import { type Amount, plusAmount, type Total } from "#runtime/money/money.ts";
import { noTokens, plusTokens, type Tokens } from "#runtime/money/tokens.ts";

/** Tokens that models used for the run, those of its sub-agents included, and what they cost. */
export interface Spent extends Tokens {
  readonly cost: Total;
}

export const unspent: Spent = { ...noTokens, cost: undefined };

/** What one request to a model used, or one call. */
export type Used = Pick<Tokens, "inputTokens" | "outputTokens"> &
  Partial<Tokens> & { readonly cost?: Amount | undefined };

/** With what was used, too. */
export function plus(spent: Spent, used: Used | undefined): Spent {
  if (used === undefined) return spent;
  return { ...plusTokens(spent, used), cost: plusAmount(spent.cost, used.cost) };
}
