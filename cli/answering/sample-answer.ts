import { isObject } from "#runtime/schema/json-object.ts";

/** What an answer by this JSON Schema may look like: what must be there, or else all that may be, with values to be replaced. As JSON text. */
export function sampleJson(schemaJson: string): string {
  let schema: unknown;
  try {
    schema = JSON.parse(schemaJson || "{}");
  } catch {
    return "JSON";
  }
  const sample = sampleOf(schema, 0);
  return sample === undefined ? "JSON" : JSON.stringify(sample);
}

/** Deeper than this nobody reads along. */
const deepest = 4;

function sampleOf(schema: unknown, depth: number): unknown {
  if (!isObject(schema) || depth > deepest) return undefined;
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (schema.default !== undefined) return schema.default;
  const [type] = [schema.type].flat();
  if (type === "boolean") return true;
  if (type === "string") return "…";
  if (type === "integer" || type === "number") return typeof schema.minimum === "number" ? schema.minimum : 0;
  if (type === "array") return [];
  if (type !== "object" && !isObject(schema.properties)) return undefined;
  const required: unknown[] = Array.isArray(schema.required) ? schema.required : [];
  const properties = Object.entries(isObject(schema.properties) ? schema.properties : {});
  const isShown = ([name]: [string, unknown]) => required.length === 0 || required.includes(name);
  return Object.fromEntries(properties.filter(isShown).map(([name, of]) => [name, sampleOf(of, depth + 1) ?? null]));
}
