/** What an answer used: as the provider counted, or as it looks from here. */

import type { LanguageModelV4Prompt, LanguageModelV4Usage } from "@ai-sdk/provider";

export interface TokensUsed {
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
}

/**
 * A provider that does not count is no reason for a budget not to: what it does not tell is estimated. A zero beside words tells
 * nothing.
 */
export function usageFrom(
  usage: LanguageModelV4Usage | undefined,
  { prompt, saidBytes }: { prompt: LanguageModelV4Prompt; saidBytes: number },
): TokensUsed {
  return {
    inputTokens: tokens(usage?.inputTokens.total) || estimatedTokens(bytesOfPrompt(prompt)),
    outputTokens: tokens(usage?.outputTokens.total) || estimatedTokens(saidBytes),
  };
}

/** Whether the provider counted at least one of the two. */
export function isTold({ inputTokens, outputTokens }: LanguageModelV4Usage): boolean {
  return [inputTokens, outputTokens].some(({ total }) => (tokens(total) ?? 0n) > 0n);
}

/** Undefined for what cannot be a count: the log takes no such number. */
function tokens(count: number | undefined): bigint | undefined {
  return count !== undefined && Number.isSafeInteger(count) && count >= 0 ? BigInt(count) : undefined;
}

const bytesOfToken = 4;

function estimatedTokens(bytes: number): bigint {
  return BigInt(Math.ceil(bytes / bytesOfToken));
}

function bytesOfPrompt(prompt: LanguageModelV4Prompt): number {
  return prompt.length === 0 ? 0 : Buffer.byteLength(JSON.stringify(prompt));
}
