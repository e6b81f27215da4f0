/** Where there is a number that a double may not hold: most texts have none, and need not be looked at number by number. */
const LONG_NUMBER = /\d{16}|\d[eE]\+?\d{3}/;

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

/** Whether JSON holds a number that `JSON.parse` changes. */
export function losesDigits(text: string): boolean {
  if (!mayLoseDigits(text)) return false;
  let isLost = false;
  parse(text, (_, value, { source = "" }) => {
    isLost ||= typeof value === "number" && !isHeld(value, source);
  });
  return isLost;
}

function isHeld(value: number, source: string): boolean {
  if (Number.isSafeInteger(value) || String(value) === source) return true;
  return Number.isFinite(value) && source.replace(/\D/g, "").length < 16;
}

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

// of ECMAScript 2026, for which TypeScript has no declarations yet
const { parse, rawJSON } = JSON as unknown as {
  parse(text: string, reviver: Reviver): unknown;
  rawJSON(text: string): object;
};
