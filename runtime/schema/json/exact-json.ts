import { randomUUID } from "node:crypto";
import { jsonFrom } from "../json-object.ts";
import { endOfText, maxValues } from "./json-size.ts";

/*
 * Numbers of JSON that no double holds, kept as they were written. They are marked in the text, each a string behind a mark, before
 * it is parsed, and made numbers again in what was parsed: a reviver of `JSON.parse` that looks at each value takes ten times as long.
 */

/** Where there is a number that a double may not hold: most texts have none, and need not be looked at number by number. */
const LONG_NUMBER = /\d[\d.]{15}|\d[eE][+-]?\d{3}/;

/** As `JSON.parse`, but a number that no double holds is a `JSON.rawJSON`, which `JSON.stringify` writes as it stood. */
export function parseExactly(text: string): unknown {
  if (!mayLoseDigits(text)) return JSON.parse(text);
  const mark = randomUUID();
  const marked = markNumbers(text, mark);
  return marked === text ? JSON.parse(text) : fromMarked(parseMarked(marked, text), mark);
}

/** What is wrong with it is told of the text as it was given. */
function parseMarked(marked: string, text: string): unknown {
  try {
    return JSON.parse(marked);
  } catch {
    return JSON.parse(text);
  }
}

/** Whether text may hold a number that `JSON.parse` changes; a string of many digits counts. */
export function mayLoseDigits(text: string): boolean {
  return LONG_NUMBER.test(text);
}

/** Whether JSON holds a number that `JSON.parse` changes. */
export function losesDigits(text: string): boolean {
  return mayLoseDigits(text) && markNumbers(text, "") !== text;
}

/** Throws where there is an integer that `JSON.parse` changes. 60 MB may take two seconds. */
export function requireExactIntegers(text: string): void {
  if (!mayLoseDigits(text)) return;
  for (const { token } of inexactNumbers(text))
    if (/^-?\d+$/.test(token))
      throw new RangeError(`the JSON has the number ${token.slice(0, 40)}, which would lose digits: send it as text`);
}

/**
 * Each number that no double holds as a string behind the mark, which must be in no string of anybody else. `fromMarked` makes numbers
 * of them again. What is no JSON stays none. Throws where there are very many.
 */
function markNumbers(json: string, mark: string): string {
  const marked: string[] = [];
  let from = 0;
  for (const { index, token } of inexactNumbers(json)) {
    marked.push(json.slice(from, index), `"${mark}${token}"`);
    from = index + token.length;
    if (marked.length > 2 * maxValues)
      throw new RangeError(`more than ${maxValues} numbers of so many digits are not read`);
  }
  return marked.join("") + json.slice(from);
}

function* inexactNumbers(json: string): Generator<{ index: number; token: string }> {
  const tokens = new RegExp(TOKEN);
  for (let found = tokens.exec(json); found; found = tokens.exec(json)) {
    const { index } = found;
    if (found[0] === '"') {
      tokens.lastIndex = endOfText(json, index) + 1;
      continue;
    }
    const end = endOfNumber(json, tokens.lastIndex);
    tokens.lastIndex = end;
    const token = json.slice(index, end);
    if (!isHeld(token) && !isName(json, end)) yield { index, token };
  }
}

/** The value, in which each marked number is one that `JSON.stringify` writes as it stood. */
function fromMarked(value: unknown, mark: string): unknown {
  const root = [value];
  const open: Holder[] = [root];
  const look = <K extends number | string>(holder: Record<K, unknown>, key: K) => {
    const inner = holder[key];
    if (typeof inner === "string" && inner.startsWith(mark)) holder[key] = rawJSON(inner.slice(mark.length));
    else if (typeof inner === "object" && inner !== null) open.push(inner as Holder);
  };
  for (let holder = open.pop(); holder; holder = open.pop())
    if (Array.isArray(holder)) for (let at = 0; at < holder.length; at += 1) look(holder, at);
    else for (const key of Object.keys(holder)) look(holder, key);
  return root[0];
}

type Holder = unknown[] | Record<string, unknown>;

/** Where a text begins, or a number that is so long, or has an exponent so large, that a double may not hold it: its first characters. */
const TOKEN = /"|-?\d[\d.eE+-]{15}|-?\d[\d.]*[eE][+-]?\d{3}/g;

/** A number may have millions of digits, which is more than an expression looks at. */
function endOfNumber(json: string, from: number): number {
  let end = from;
  while (IN_NUMBER.has(json.charCodeAt(end))) end += 1;
  return end;
}

const IN_NUMBER: ReadonlySet<number> = new Set([..."0123456789.eE+-"].map((character) => character.charCodeAt(0)));

/** What is no number is nothing that loses digits. */
function isHeld(source: string): boolean {
  const value = jsonFrom(source) as number | undefined;
  if (value === undefined || String(value) === source) return true;
  return Number.isFinite(value) && source.replace(/\D/g, "").length < 16;
}

/** A number is no name of a member: marked, it would become one. */
function isName(json: string, end: number): boolean {
  let at = end;
  while (" \t\r\n".includes(json[at] ?? ":")) at += 1;
  return json[at] === ":";
}

// of ECMAScript 2026, for which TypeScript has no declarations yet
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): value is object;
};
/** Whether `parseExactly` read it as a number that no double holds. */
export const isLongNumber = isRawJSON;
