export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A JSON Schema by its form alone, as JSON reads it. */
export type JsonSchema = Record<string, unknown> | boolean;

export function isJsonSchema(value: unknown): value is JsonSchema {
  return typeof value === "boolean" || isObject(value);
}
