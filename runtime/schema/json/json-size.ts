/** More levels than anybody writes, and far fewer than a stack has room for, whoever walks through them: a package, a provider. */
export const maxLevels = 200;

const [newLine, carriageReturn, backslash] = [0x0a, 0x0d, 0x5c];
const [quote, comma, colon, openList, closeList, openObject, closeObject] = [0x22, 0x2c, 0x3a, 0x5b, 0x5d, 0x7b, 0x7d];

/** Whether a JSON text is nested deeper than that. It is read from left to right: to walk down would be what it is to prevent. */
export function isTooDeep(json: string): boolean {
  if (json.length <= maxLevels) return false;
  let levels = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === quote) at = endOfText(json, at);
    else if (code === openList || code === openObject) levels += 1;
    else if (code === closeList || code === closeObject) levels -= 1;
    if (levels > maxLevels) return true;
  }
  return false;
}

/** What callers send: more than they write, and read in less than a second, with a name of its own for each member. */
export const maxValues = 200_000;

/** What tools answer: a table of half a million rows. */
export const maxToolValues = 2_000_000;

/** Numbers and texts in lists take a tenth of what other values do. */
export const ELEMENTS_OF_VALUE = 10;

/** As `JSON.parse`. Throws also where there are more values than `most`: 60 MB of `{}` cost half a minute and a gigabyte. */
export function parseBounded(json: string, most: number = maxValues): unknown {
  if (hasMoreValues(json, most)) throw new RangeError(`${tooMany(most)} are not read`);
  return JSON.parse(json);
}

/** What a tool wrote; undefined for what is no JSON, or more than is read. */
export function toolJsonFrom(json: string): unknown {
  try {
    return parseBounded(json, maxToolValues);
  } catch {
    return undefined; // who asks says what it is instead
  }
}

/** What a text has that has more of them. */
export function tooMany(most: number): string {
  return `more than ${most} objects, lists and members, or ${most * ELEMENTS_OF_VALUE} elements of lists`;
}

/**
 * Whether there are more objects, lists and members of objects in a JSON text than `most`, or more commas than `mostElements`. Three bytes
 * of it may take twenty times their room.
 */
export function hasMoreValues(json: string, most: number, mostElements: number = most * ELEMENTS_OF_VALUE): boolean {
  if (json.length <= most) return false;
  let [values, elements] = [0, 0];
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === quote) at = endOfText(json, at);
    else if (code === comma) elements += 1;
    else if (code === openObject || code === openList || code === colon) values += 1;
    if (values > most || elements > mostElements) return true;
  }
  return false;
}

/** Whether there are more of them with each next piece of a JSON text: `hasMoreValues`. No text of JSON goes on beyond its line. */
export function createValueCount(most: number): (piece: Uint8Array) => boolean {
  let counted = { values: 0, elements: 0, isText: false, isEscaped: false };
  return (piece) => {
    let { values, elements, isText, isEscaped } = counted;
    const find = createFinder(piece, [quote, backslash, newLine, carriageReturn]);
    for (let at = 0; at < piece.length; at += 1) {
      if (isText && !isEscaped) at = find(at);
      const code = piece[at];
      if (code === newLine || code === carriageReturn) isText = isEscaped = false;
      else if (isEscaped) isEscaped = false;
      else if (isText && code === backslash) isEscaped = true;
      else if (code === quote) isText = !isText;
      else if (code === comma) elements += 1;
      else if (code === openObject || code === openList || code === colon) values += 1;
    }
    counted = { values, elements, isText, isEscaped };
    return values > most || elements > most * ELEMENTS_OF_VALUE;
  };
}

/** From a place on, where the first of these codes stands, or the end; each stretch of the piece is looked through once a code. */
function createFinder(piece: Uint8Array, codes: readonly number[]): (from: number) => number {
  const next = codes.map(() => -1);
  return (from) => {
    for (const [n, code] of codes.entries()) {
      if ((next[n] ?? 0) >= from) continue;
      const found = piece.indexOf(code, from);
      next[n] = found === -1 ? piece.length : found;
    }
    return Math.min(...next);
  };
}

/** Where the text that begins with the quote there ends, or the whole. Megabytes of text are leapt over. */
export function endOfText(json: string, begin: number): number {
  for (let end = json.indexOf('"', begin + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (json[end - 1 - backslashes] === "\\") backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return json.length;
}
