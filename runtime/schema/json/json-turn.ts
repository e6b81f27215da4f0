import { HEAVY_VALUES, ownTurn, type Taker } from "../../collections/turns/own-turn.ts";
import { hasMoreValues, maxValues, tooMany } from "./json-size.ts";

/** Resolves when a JSON text may be parsed; undefined where that is at once. */
export function turnForJson(text: string, taker: Taker): Promise<void> | undefined {
  return hasMoreValues(text, HEAVY_VALUES) ? ownTurn(taker) : undefined;
}

/** What is wrong with the text of a result, said after its name; undefined for JSON that can be read. */
export async function faultOfJson(text: string, taker: Taker): Promise<string | undefined> {
  if (hasMoreValues(text, maxValues)) return `has ${tooMany(maxValues)}`;
  await turnForJson(text, taker);
  try {
    JSON.parse(text);
    return undefined;
  } catch {
    return "is not JSON";
  }
}
