import type { Usage } from "#gen/toolbus/tool/v1/usage_pb.ts";

/** Tokens that models used; what an older release has not counted apart is 0. */
export type Tokens = Pick<Usage, (typeof KINDS)[number]>;

const KINDS = ["inputTokens", "outputTokens", "cachedInputTokens", "cacheWriteTokens", "reasoningTokens"] as const;

export const noTokens: Tokens = tokensFrom(() => 0n);

export function plusTokens(one: Tokens, other: Partial<Tokens>): Tokens {
  return tokensFrom((kind) => one[kind] + (other[kind] ?? 0n));
}

function tokensFrom(countOf: (kind: keyof Tokens) => bigint): Tokens {
  return Object.fromEntries(KINDS.map((kind) => [kind, countOf(kind)])) as unknown as Tokens;
}
