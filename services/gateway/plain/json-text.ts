import { isObject } from "#runtime/schema/json-object.ts";

/** ECMAScript's access to the source text of JSON, which the library's types do not know. */
interface SourceJson {
  parse(text: string, revive: (key: string, value: unknown, context: { source: string }) => unknown): unknown;
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
}

const { parse, rawJSON, isRawJSON } = JSON as unknown as SourceJson;

/** Reads JSON whose numbers `JSON.stringify` writes again as they stand, since a double does not hold all of them. */
export function parseKeepingNumbers(text: string): unknown {
  return parse(text, (_, value, { source }) => (typeof value === "number" ? rawJSON(source) : value));
}

/** Whether this is an object of the text, and no number of it. */
export function isJsonObject(value: unknown): value is Record<string, unknown> {
  return isObject(value) && !isRawJSON(value);
}
