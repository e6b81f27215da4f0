import type { Usage } from "#gen/toolbus/tool/v1/usage_pb.ts";

/** As `1,204 tokens in · 380 out · 0.0123 EUR`; empty where nothing was used. */
export function usageText(usage: Usage | undefined): string {
  if (!usage) return "";
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens, cost } = usage;
  const parts: string[] = [];
  if (inputTokens > 0n || outputTokens > 0n)
    parts.push(
      `${inputTokens.toLocaleString()} tokens in${apart(cachedInputTokens, "cached")}`,
      `${outputTokens.toLocaleString()} out${apart(reasoningTokens, "reasoning")}`,
    );
  if (cost && cost.micros > 0n)
    parts.push(`${(Number(cost.micros) / 1e6).toFixed(6).replace(/00$/, "")} ${cost.currencyCode}`);
  return parts.join(" · ");
}

const apart = (count: bigint, of: string) => (count > 0n ? ` (${count.toLocaleString()} ${of})` : "");
