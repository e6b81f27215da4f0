/** What an answer used: as the provider counted, or as it looks from here. */

import type { LanguageModelV4Prompt, LanguageModelV4Usage } from "@ai-sdk/provider";
import type { Tokens } from "#runtime/money/tokens.ts";

/**
 * A provider that does not count is no reason for a budget not to: what it does not tell is estimated. A zero beside words tells
 * nothing.
 */
export function usageFrom(
  usage: LanguageModelV4Usage | undefined,
  { prompt, saidBytes }: { prompt: LanguageModelV4Prompt; saidBytes: number },
): Tokens {
  const { inputTokens: read, outputTokens: written } = usage ?? {};
  const inputTokens = tokens(read?.total) || estimatedTokens(bytesOfPrompt(prompt));
  const outputTokens = tokens(written?.total) || estimatedTokens(saidBytes);
  return {
    inputTokens,
    outputTokens,
    ...{
      cachedInputTokens: partOf(inputTokens, read?.cacheRead),
      cacheWriteTokens: partOf(inputTokens, read?.cacheWrite),
    },
    reasoningTokens: partOf(outputTokens, written?.reasoning),
  };
}

/** Whether the provider counted at least one of the two. */
export function isTold({ inputTokens, outputTokens }: LanguageModelV4Usage): boolean {
  return [inputTokens, outputTokens].some(({ total }) => (tokens(total) ?? 0n) > 0n);
}

/** A part is never more than the whole that it is counted in. */
function partOf(whole: bigint, count: number | undefined): bigint {
  const part = tokens(count) ?? 0n;
  return part > whole ? whole : part;
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
