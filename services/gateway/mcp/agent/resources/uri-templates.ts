/** Longer addresses fit no template, and templates of more variables no address: a server makes the one, a client the other. */
const MAX_URI = 8_192;
const MAX_PIECES = 2 * 32 + 1;

/** Of all templates that one address is held against; some 50 ms. */
export const MAX_STEPS = 5_000_000;

export interface Budget {
  steps: number;
}

/** A text, or what each of one or more characters is. */
type Piece = string | RegExp;

/**
 * Whether the address fits the template, as the SDK has it (2.4.0), whose expression for it takes a time that grows with a power of the
 * address's length, one more for each variable. Here each piece goes once through the places that the one before has come to.
 */
export function fitsTemplate(template: string, uri: string, budget: Budget = { steps: MAX_STEPS }): boolean {
  if (budget.steps < 0) return false;
  const parts = template.split(/\{([^{}]*)\}/, MAX_PIECES + 1);
  const pieces = parts.flatMap((part, n) => (n % 2 === 0 ? [part] : piecesOf(part)));
  if (uri.length > MAX_URI || pieces.length > MAX_PIECES) return false;
  let places = new Uint8Array(uri.length + 1);
  places[0] = 1;
  for (const piece of pieces) {
    budget.steps -= uri.length;
    if (budget.steps < 0 || !places.includes(1)) return false;
    places = placesAfter(piece, places, uri);
  }
  return places[uri.length] === 1;
}

function placesAfter(piece: Piece, places: Uint8Array, uri: string): Uint8Array<ArrayBuffer> {
  const after = new Uint8Array(uri.length + 1);
  for (let at = 0; at <= uri.length; at += 1) {
    if (typeof piece === "string") {
      if (places[at] && uri.startsWith(piece, at)) after[at + piece.length] = 1;
    } else if ((places[at] || after[at]) && piece.test(uri.charAt(at))) after[at + 1] = 1;
  }
  return after;
}

function piecesOf(expression: string): Piece[] {
  const [operator = "", list = expression] = /^[+#./?&]/.test(expression) ? [expression[0], expression.slice(1)] : [];
  if (operator === "+" || operator === "#") return [/./];
  const one = list.includes("*") ? /[^/]/ : /[^/,]/;
  if (operator !== "?" && operator !== "&") return operator === "" ? [one] : [operator, one];
  const names = list.split(",").map((name) => name.replace("*", "").trim());
  return names.flatMap((name, n) => [`${n === 0 ? operator : "&"}${name}=`, /[^&]/]);
}
