import { endOfText, maxValues } from "./json-size.ts";

/** Where there is a number that a double may not hold: most texts have none, and need not be looked at number by number. */
const LONG_NUMBER = /\d[\d.]{15}|\d[eE][+-]?\d{3}/;

/** As `JSON.parse`, but a number that no double holds is a `JSON.rawJSON`, which `JSON.stringify` writes as it stood. */
export function parseExactly(text: string): unknown {
  if (!LONG_NUMBER.test(text)) return JSON.parse(text);
  return parse(text, (_, value, { source = "" }) =>
    typeof value === "number" && !isHeld(value, source) ? rawJSON(source) : value,
  );
}

/** Whether text may hold a number that `JSON.parse` changes; a string of many digits counts. */
export function mayLoseDigits(text: string): boolean {
  return LONG_NUMBER.test(text);
}

/** How many elements of lists a text may have: each of one that may lose digits is looked at, which takes ten times as long. */
export function mostElements(text: string): number | undefined {
  return mayLoseDigits(text) ? maxValues : undefined;
}

/** Whether JSON holds a number that `JSON.parse` changes. */
export function losesDigits(text: string): boolean {
  if (!mayLoseDigits(text)) return false;
  let isLost = false;
  parse(text, (_, value, { source = "" }) => {
    isLost ||= typeof value === "number" && !isHeld(value, source);
  });
  return isLost;
}

/**
 * For readers of JSON that are not ours: each number that no double holds as a string behind the mark, which must be in no string
 * of anybody else. `fromMarked` makes numbers of them again.
 */
export function markNumbers(json: string, mark: string): string {
  let marked = "";
  let from = 0;
  TOKEN.lastIndex = 0;
  for (let found = TOKEN.exec(json); found; found = TOKEN.exec(json)) {
    const [token] = found;
    if (token === '"') TOKEN.lastIndex = endOfText(json, found.index) + 1;
    else if (!isHeld(Number(token), token)) {
      marked += `${json.slice(from, found.index)}"${mark}${token}"`;
      from = TOKEN.lastIndex;
    }
  }
  return marked + json.slice(from);
}

/** The marked numbers within, as `numberFrom` makes them. */
export function fromMarked(value: unknown, mark: string, numberFrom: (source: string) => unknown): unknown {
  return parse(JSON.stringify(value), (_, inner) =>
    typeof inner === "string" && inner.startsWith(mark) ? numberFrom(inner.slice(mark.length)) : inner,
  );
}

const TOKEN = /"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

function isHeld(value: number, source: string): boolean {
  if (String(value) === source) return true;
  return Number.isFinite(value) && source.replace(/\D/g, "").length < 16;
}

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

/** A number that `JSON.stringify` writes as it stood. */
export const numberAsWritten = (source: string): unknown => rawJSON(source);

// of ECMAScript 2026, for which TypeScript has no declarations yet
const { parse, rawJSON } = JSON as unknown as {
  parse(text: string, reviver: Reviver): unknown;
  rawJSON(text: string): object;
};
