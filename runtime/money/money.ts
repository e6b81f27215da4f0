import type { Money } from "#gen/toolbus/tool/v1/usage_pb.ts";

/** An amount of money, as messages and plain values have it. */
export type Amount = Pick<Money, "currencyCode" | "micros">;

/** What amounts make up: undefined while none is known, "mixed" for several currencies, which have no sum. */
export type Total = Amount | "mixed" | undefined;

const INT64_MAX = 2n ** 63n - 1n;

/** With one amount more. What is free adds nothing, in whatever currency; a sum that no message can hold stays at the most it can. */
export function plusAmount(total: Total, amount: Amount | undefined): Total {
  if (amount === undefined || total === "mixed") return total;
  const { currencyCode, micros } = amount;
  if (micros <= 0n) return total ?? { currencyCode, micros: 0n };
  if (total === undefined || total.micros === 0n) return { currencyCode, micros };
  return total.currencyCode === currencyCode ? { currencyCode, micros: capped(total.micros + micros) } : "mixed";
}

/** What is left of `most`: nothing once something in another currency was spent, since nobody can hold that against it. */
export function amountLeft(most: Amount, spent: Total): Amount {
  const { currencyCode } = most;
  const micros = countedIn(currencyCode, spent);
  return { currencyCode, micros: micros === undefined || micros > most.micros ? 0n : most.micros - micros };
}

/** In micros of the currency; undefined for what is not of this currency alone. */
function countedIn(currencyCode: string, spent: Total): bigint | undefined {
  if (spent === undefined) return 0n;
  if (spent === "mixed") return undefined;
  return spent.micros === 0n || spent.currencyCode === currencyCode ? spent.micros : undefined;
}

/** The lower of two limits; nothing if they are of two currencies, which nobody can compare. */
export function lowerAmount(one: Amount | undefined, other: Amount | undefined): Amount | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  if (one.currencyCode !== other.currencyCode) return { currencyCode: one.currencyCode, micros: 0n };
  return one.micros <= other.micros ? one : other;
}

/** What one of so many may have, so that all of them have no more than the amount. */
export function shareOfAmount({ currencyCode, micros }: Amount, sharers: number): Amount {
  return { currencyCode, micros: micros / BigInt(sharers) };
}

/**
 * How a total is told to a budget above: amounts of several currencies have used up `most`, which is all that they might cost.
 * Without a limit nothing is known of them.
 */
export function toldAmount(total: Total, most: Amount | undefined): Amount | undefined {
  return total === "mixed" ? most : total;
}

/** The cost of one request to a model at these prices a million tokens: rounded up, so that no sum is below what was spent. */
export function costOfTokens(tokens: readonly { count: bigint; microsPerMillion: bigint }[]): bigint {
  const exact = tokens.reduce((sum, { count, microsPerMillion }) => sum + count * microsPerMillion, 0n);
  return capped((exact + 999_999n) / 1_000_000n);
}

/** As people read it: `2.50 USD`, `0.0123 USD`. */
export function textOfAmount({ currencyCode, micros }: Amount): string {
  const digits = String(micros).padStart(7, "0");
  const decimals = digits.slice(-6).replace(/0{1,4}$/, "");
  return `${digits.slice(0, -6)}.${decimals} ${currencyCode}`;
}

function capped(micros: bigint): bigint {
  return micros > INT64_MAX ? INT64_MAX : micros;
}
