export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a JSON text says; undefined for what is none. */
export function jsonFrom(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The fields of an object; what is none has none. */
export function fieldsOf(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

type Filled<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** The fields that say something: neither undefined, nor an empty text or list. */
export function filled<T extends object>(fields: T): Filled<T> {
  const isEmpty = (value: unknown) =>
    value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value))) as Filled<T>;
}

/** A JSON Schema by its form alone, as JSON reads it. */
export type JsonSchema = Record<string, unknown> | boolean;

export function isJsonSchema(value: unknown): value is JsonSchema {
  return typeof value === "boolean" || isObject(value);
}
