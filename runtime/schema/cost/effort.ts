/**
 * How often a schema may look at one place of what it judges: the number of its parts, those that references lead to counted
 * each time. Infinite where that has no bound of its own: references in a circle, or ones that only the compiler can follow.
 */
export function effortOf(schema: unknown): number {
  const known = new Map<object, number>();

  function effort(part: unknown): number {
    if (typeof part !== "object" || part === null) return 1;
    const found = known.get(part);
    if (found !== undefined) return found;
    known.set(part, Number.POSITIVE_INFINITY); // a circle leads back to here
    let sum = 1;
    for (const [key, value] of Object.entries(part)) {
      if (key === "uniqueItems") sum += PAIRS;
      sum += REFERENCES.has(key) && typeof value === "string" ? effort(targetOf(schema, value)) : effort(value);
    }
    known.set(part, sum);
    return sum;
  }

  return effort(schema);
}

/** Elements that are compared in pairs: so many looks at each, as far as short texts go. */
const PAIRS = 1_000;

const REFERENCES: ReadonlySet<string> = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);

/** What cannot be found leads in a circle, as far as anybody knows. */
function targetOf(schema: unknown, reference: string): unknown {
  return reference.startsWith("#/") ? (partAt(schema, reference) ?? schema) : schema;
}

/** The part that a pointer `#/…` leads to; undefined when there is none. */
export function partAt(schema: unknown, pointer: string): unknown {
  let part = schema;
  for (const step of decoded(pointer.slice(2)).split("/")) {
    const key = unescaped(step);
    if (typeof part !== "object" || part === null || !Object.hasOwn(part, key)) return undefined;
    part = (part as Record<string, unknown>)[key];
  }
  return part;
}

function decoded(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment; // not encoded
  }
}

/** A step of a JSON pointer as it is. */
export function unescaped(step: string): string {
  return step.replaceAll("~1", "/").replaceAll("~0", "~");
}
