import type { Options } from "ajv";
import { createTimeLimit, OutOfTime } from "./time-limit.ts";

/**
 * Regular expressions of schemas that others wrote, under a limit of time: one that backtracks without end would stand still
 * for every call of this process.
 */
type RegExpEngine = NonNullable<NonNullable<Options["code"]>["regExp"]>;

export interface PatternEngine {
  readonly engine: RegExpEngine;
  /** Each validation has its time for all its patterns together. */
  begin(): void;
}

export class PatternTooSlow extends Error {
  constructor(pattern: string, limitMs: number) {
    super(`the pattern ${JSON.stringify(pattern.slice(0, 100))} takes longer than ${limitMs} ms`);
  }
}

/** Up to this length, a plain pattern is done in no time. */
const MAX_PLAIN_CHARACTERS = 2_000;

export function createPatternEngine(limitMs: number): PatternEngine {
  const limit = createTimeLimit(limitMs);

  function testWithin(expression: RegExp, text: string): boolean {
    try {
      return limit.run(() => expression.test(text));
    } catch (error) {
      throw error instanceof OutOfTime ? new PatternTooSlow(expression.source, limitMs) : error;
    }
  }

  const engineFrom = (pattern: string, flags: string) => {
    const expression = new RegExp(pattern, flags);
    const isPlain = isPlainPattern(pattern);
    return {
      toString: () => String(expression), // ajv keeps one for each text
      test(text: string): boolean {
        if (isPlain && text.length <= MAX_PLAIN_CHARACTERS) return expression.test(text);
        return testWithin(expression, text);
      },
    };
  };
  return {
    engine: Object.assign(engineFrom, { code: "new RegExp" }),
    begin: limit.begin,
  };
}

/** Nothing repeated within something repeated, nothing referred back to, and one part of no fixed length at most. */
function isPlainPattern(pattern: string): boolean {
  const bare = pattern.replace(/\\[^1-9k]/g, "x").replace(/\[[^\]]*\]/g, "x");
  const hasRepeatedGroup = /\)[*+?{]/.test(bare);
  const unbounded = bare.match(/[*+]|\{\d+,\}/g)?.length ?? 0;
  return !hasRepeatedGroup && !bare.includes("\\") && unbounded <= 1;
}
