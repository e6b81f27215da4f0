import { isJsonSchema, isObject, type JsonSchema } from "../json-object.ts";
import { MAX_SCHEMA_CHARACTERS } from "./limits.ts";
import type { Soon } from "./validator.ts";

/** What is wrong with a JSON Schema, told as it was read and as its text; undefined for a good one. */
export type FaultOfSchema = (schema: JsonSchema, text: string) => Soon<string | undefined>;

/** What a tool says of its arguments and its results. */
export type SchemaPlace = "arguments" | "results";

/**
 * What keeps a text from being the schema of a tool, as words that follow its name; undefined for a good one. The last word has
 * `faultOf`, which is told the schema as it was read.
 */
export async function faultOfToolSchema(
  text: string,
  place: SchemaPlace,
  faultOf: FaultOfSchema,
): Promise<string | undefined> {
  if (text.length > MAX_SCHEMA_CHARACTERS) return `is longer than ${MAX_SCHEMA_CHARACTERS} characters`;
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch {
    return "is no JSON";
  }
  if (!isJsonSchema(schema)) return "is no JSON Schema: a JSON Schema is an object";
  const fault = await faultOf(schema, text);
  if (fault) return `is no JSON Schema: ${fault}`;
  const isOfObjects = isObject(schema) && (schema.type === undefined || schema.type === "object");
  return place === "arguments" && !isOfObjects ? "is not one of objects, as arguments are" : undefined;
}

/** What a model is told whose arguments do not fit; the tool by its reference. */
export function argumentsRefused(reference: string, fault: string): string {
  return `Tool ${JSON.stringify(reference)} refuses its arguments: ${fault}`;
}
