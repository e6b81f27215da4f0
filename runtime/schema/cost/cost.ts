import { ELEMENTS_OF_VALUE, hasMoreValues, isTooDeep } from "../json/json-size.ts";
import { isObject, jsonFrom } from "../json-object.ts";
import { effortOf } from "./effort.ts";

/*
 * What a schema may cost whoever compiles it and judges by it. What costs little for certain is done where it is needed, all else
 * on a thread of its own: a round trip takes 0.2 ms, and the worst schemas take seconds.
 */

/** Some 10 ms to compile, at worst. */
const CHEAP_PARTS = 200;
const CHEAP_CHARACTERS = 64 * 1_024;

/** So many looks at values, or steps of regular expressions, take some 10 ms at worst. */
const CHEAP_STEPS = 500_000;

/** So many characters are parsed in some 10 ms, or 40 where each is an escape. */
const LONG_TEXT = 4 * 1_024 * 1_024;

/** What judging by a schema that is cheap to compile may cost. */
export interface Cost {
  /** Looks at each place of what is judged. */
  readonly looks: number;
  /** Regular expressions, those of formats too. */
  readonly patterns: number;
  /** Whether a look may go through the characters of a text, and not only see that there is one. */
  readonly readsTexts: boolean;
}

/** Undefined for a schema that may cost more to compile than may be spent on a service's own thread. */
export function costOfCheap(schemaJson: string): Cost | undefined {
  if (schemaJson.length > CHEAP_CHARACTERS || isTooDeep(schemaJson)) return undefined;
  const schema = jsonFrom(schemaJson); // of what is none, the compiler says what is wrong with it
  const looks = effortOf(schema);
  if (looks > CHEAP_PARTS) return undefined;
  const { patterns, readsTexts } = textPartsIn(schema);
  return patterns.every(isPlainPattern) ? { looks, patterns: patterns.length, readsTexts } : undefined;
}

/** Whether a JSON text is judged in no time. Plain patterns take the square of a text's length at worst. */
export function isCheap({ looks, patterns, readsTexts }: Cost, text: string): boolean {
  const { length } = text;
  if (looks * length + patterns * length ** 2 <= CHEAP_STEPS) return true;
  return !readsTexts && length <= LONG_TEXT && !hasMoreValues(text, CHEAP_STEPS / looks / (1 + ELEMENTS_OF_VALUE));
}

const READERS = ["minLength", "maxLength", "uniqueItems", "pattern", "format", "patternProperties"];

/** What reads texts: all that may be a pattern, of which a format is one of a plain kind, and other keywords. */
function textPartsIn(schema: unknown): { patterns: string[]; readsTexts: boolean } {
  const patterns: string[] = [];
  let readsTexts = false;
  const open: unknown[] = [schema];
  while (open.length > 0) {
    const part = open.pop();
    if (Array.isArray(part)) open.push(...part);
    if (!isObject(part)) continue;
    open.push(...Object.values(part));
    readsTexts ||= READERS.some((keyword) => keyword in part);
    if (typeof part.pattern === "string") patterns.push(part.pattern);
    if (typeof part.format === "string") patterns.push("");
    if (isObject(part.patternProperties)) patterns.push(...Object.keys(part.patternProperties));
  }
  return { patterns, readsTexts };
}

const PLAIN_CHARACTERS = 300;
const PLAIN_CHOICES = 5;

/**
 * Nothing repeated within something repeated, nothing referred back to or looked for ahead, one part of no fixed length at most, and
 * few places where there is a choice: such a pattern looks at each character of a text once for each place where it may begin. Nor
 * has it classes of Unicode, of which a few take ms to compile.
 */
export function isPlainPattern(pattern: string): boolean {
  if (pattern.length > PLAIN_CHARACTERS || /\\p/i.test(pattern)) return false;
  const bare = pattern.replace(/\\[^1-9k]/g, "x").replace(/\[[^\]]*\]/g, "x");
  if (bare.includes("\\") || /\)[*+?{]|\(\?[^:]/.test(bare)) return false;
  const unbounded = bare.match(/[*+]|\{\d*,\d*\}/g)?.length ?? 0;
  const optional = bare.match(/\?/g)?.length ?? 0;
  const groups = bare.includes("|") ? (bare.match(/\(/g)?.length ?? 0) : 0;
  return unbounded <= 1 && optional <= PLAIN_CHOICES && groups <= 1;
}
