import { partAt } from "./cost/effort.ts";
import { isObject } from "./json-object.ts";

/**
 * Why a schema of good shape cannot be compiled, which costs more to find out by trying: it refers to what it does not hold (nothing
 * is ever fetched), or has a pattern that is none.
 */
export function faultOfUse(schema: unknown): string | undefined {
  const { references, names, patterns } = gathered(schema);
  const missing = references.find((reference) => !isFound(schema, names, reference));
  if (missing !== undefined) return `it refers to ${shortened(missing)}, which is not in it`;
  const unreadable = patterns.find((pattern) => !isPattern(pattern));
  return unreadable && `the pattern ${shortened(unreadable)} is no regular expression`;
}

function shortened(text: string): string {
  return JSON.stringify(text.slice(0, 200));
}

export function isPattern(text: string): boolean {
  try {
    return new RegExp(text, "u") instanceof RegExp;
  } catch {
    return false; // a syntax error, which is the answer
  }
}

export function isFound(schema: unknown, names: ReadonlySet<string>, reference: string): boolean {
  if (reference === "#" || reference === "#/") return true;
  if (reference.startsWith("#/")) return partAt(schema, reference) !== undefined;
  const [address = "", fragment = ""] = reference.split("#");
  return names.has(reference) || (address === "" ? names.has(fragment) : names.has(address) || isDialect(address));
}

/** By which parts of a schema refer to others of it. */
export function namesIn(schema: unknown): ReadonlySet<string> {
  return gathered(schema).names;
}

/** The drafts' own schemas are known. */
function isDialect(address: string): boolean {
  return /^https?:\/\/json-schema\.org\/draft(-07|\/2020-12)\//.test(address);
}

/** Below these stands data, which is no schema. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);

function gathered(schema: unknown) {
  const references: string[] = [];
  const names = new Set<string>();
  const patterns: string[] = [];
  const open: unknown[] = [schema];
  while (open.length > 0) {
    const part = open.pop();
    if (Array.isArray(part)) open.push(...part);
    if (!isObject(part)) continue;
    for (const [key, value] of Object.entries(part)) {
      if (typeof value !== "string") {
        if (!DATA.has(key)) open.push(value);
        if (key === "patternProperties" && isObject(value)) patterns.push(...Object.keys(value));
      } else if (key === "$ref" || key === "$dynamicRef") references.push(value);
      else if (key === "pattern") patterns.push(value);
      else if (key === "$id" || key === "$anchor" || key === "$dynamicAnchor") names.add(value.replace(/^#|#$/g, ""));
    }
  }
  return { references, names, patterns };
}
