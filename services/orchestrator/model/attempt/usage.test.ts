import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { usageFrom } from "./usage.ts";

const prompt: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "x".repeat(400) }] }];

const apart = { cachedInputTokens: 0n, cacheWriteTokens: 0n, reasoningTokens: 0n };

function count(input: number | undefined, output: number | undefined, saidBytes = 40) {
  const inputTokens = { total: input, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
  const outputTokens = { total: output, text: undefined, reasoning: undefined };
  return usageFrom({ inputTokens, outputTokens }, { prompt, saidBytes });
}

describe("what an answer used", () => {
  const estimated = count(undefined, undefined);

  test("LOOP-12 is as the provider counted, or estimated where it did not", () => {
    expect(count(7, 3)).toEqual({ ...apart, inputTokens: 7n, outputTokens: 3n });
    expect(estimated.inputTokens).toBeGreaterThan(100n);
    expect(estimated.outputTokens).toBe(10n);
  });

  test("LOOP-12 is estimated where nothing was counted beside words", () => {
    expect(count(0, 0)).toEqual(estimated);
    expect(count(7, 0)).toEqual({ ...estimated, inputTokens: 7n });
    expect(count(7, 0, 0)).toEqual({ ...apart, inputTokens: 7n, outputTokens: 0n });
  });

  test("LOOP-12 tells what a provider counts apart, which is never more than the whole", () => {
    const counted = (cacheRead: number, cacheWrite: number, reasoning: number) =>
      usageFrom(
        {
          inputTokens: { total: 100, noCache: undefined, cacheRead, cacheWrite },
          outputTokens: { total: 50, text: undefined, reasoning },
        },
        { prompt, saidBytes: 4 },
      );
    const told = { inputTokens: 100n, outputTokens: 50n };
    expect(counted(80, 10, 20)).toEqual({
      ...told,
      cachedInputTokens: 80n,
      cacheWriteTokens: 10n,
      reasoningTokens: 20n,
    });
    expect(counted(500, -1, 0.5)).toEqual({ ...told, ...apart, cachedInputTokens: 100n });
  });

  test.each([1e30, 2 ** 53, -3, 0.5, Number.NaN, Number.POSITIVE_INFINITY, "7" as never, null as never])(
    "LOOP-12 is estimated where the count is none: %s",
    (absurd) => {
      expect(count(absurd, absurd)).toEqual(estimated);
      expect(count(absurd, 3)).toEqual({ ...estimated, outputTokens: 3n });
    },
  );
});
