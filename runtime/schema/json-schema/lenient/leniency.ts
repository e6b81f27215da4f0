import { unescaped } from "../../cost/effort.ts";
import { isObject } from "../../json-object.ts";
import { isFound, isPattern, namesIn } from "../../unusable.ts";

/*
 * A schema of somebody else's tool may say what cannot be checked here: patterns of another language, references to elsewhere, words of
 * an older draft. Those parts are left to whoever runs the tool, and all others are checked.
 *
 * LENIENT-1  What is left is told, each part with its path.
 * LENIENT-2  A schema that lost a part refuses nothing that the whole one takes. Where fewer conditions would refuse more (`not`, `if`,
 *            one of several, what is left unevaluated), these are left, too.
 */

export interface Lenient {
  readonly schema: Record<string, unknown>;
  readonly left: readonly string[];
}

/** The parts of a schema that can be checked; `misplaced` gives where it is not as its dialect wants it, as JSON pointers. */
export function lenientSchema(
  whole: Record<string, unknown>,
  misplaced: (schema: Record<string, unknown>) => string[],
): Lenient {
  const schema = structuredClone(whole);
  const left = new Set<string>();
  const leave = (holder: Record<string, unknown>, key: string, path: string) => {
    left.add(`${path.slice(1).replaceAll("/", ".")} ${(JSON.stringify(holder[key]) ?? "").slice(0, 100)}`);
    delete holder[key];
  };
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const pointers = new Set(misplaced(schema));
    if (pointers.size === 0) break;
    for (const pointer of pointers) leaveAt(schema, pointer, leave);
  }
  const names = namesIn(schema);
  for (const [part, path] of partsOf(schema)) {
    if (typeof part.pattern === "string" && !isPattern(part.pattern)) leave(part, "pattern", `${path}/pattern`);
    for (const key of ["$ref", "$dynamicRef"]) {
      if (typeof part[key] === "string" && !isFound(schema, names, part[key])) leave(part, key, `${path}/${key}`);
    }
    if (typeof part.id === "string") leave(part, "id", `${path}/id`);
    delete part.$async; // of the compiler alone: it says nothing of what is checked
    if ("nullable" in part && part.type === undefined) delete part.nullable;
    leavePatternsOfNames(part, path, leave);
  }
  if (left.size > 0) for (const [part] of partsOf(schema)) weaken(part);
  return { schema, left: [...left] };
}

const MAX_ROUNDS = 20;
/** Below these stand schemas by name, in a list, or one. */
const BY_NAME = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
  "dependencies",
]);
const LISTS = new Set(["allOf", "anyOf", "oneOf", "prefixItems", "items"]);
const SINGLE = new Set([
  ...["additionalProperties", "additionalItems", "items", "contains", "propertyNames", "not", "if", "then", "else"],
  ...["unevaluatedItems", "unevaluatedProperties", "contentSchema"],
]);

type Leave = (holder: Record<string, unknown>, key: string, path: string) => void;

/** Leaves the smallest whole part to which a pointer leads: a keyword of a schema. */
function leaveAt(schema: Record<string, unknown>, pointer: string, leave: Leave): void {
  const steps = pointer.split("/").slice(1).map(unescaped);
  let part = schema;
  for (let at = 0; at < steps.length; ) {
    const key = steps[at]!;
    const value = part[key];
    const isBelow = (BY_NAME.has(key) && isObject(value)) || (LISTS.has(key) && Array.isArray(value));
    const next = isBelow ? Object(value)[steps[at + 1] ?? ""] : SINGLE.has(key) ? value : undefined;
    const used = isBelow ? 2 : 1;
    if (!isObject(next) || at + used >= steps.length) {
      const [holder, name] =
        isBelow && BY_NAME.has(key) && at + 1 < steps.length ? [Object(value), steps[at + 1]!] : [part, key];
      if (name in holder) leave(holder, name, `/${steps.slice(0, holder === part ? at + 1 : at + 2).join("/")}`);
      return;
    }
    part = next;
    at += used;
  }
}

/** Names that no pattern catches any more would be unknown ones. */
function leavePatternsOfNames(part: Record<string, unknown>, path: string, leave: Leave): void {
  const patterns = part.patternProperties;
  if (!isObject(patterns)) return;
  const unreadable = Object.keys(patterns).filter((pattern) => !isPattern(pattern));
  for (const pattern of unreadable) leave(patterns, pattern, `${path}/patternProperties/${pattern}`);
  if (unreadable.length > 0) delete part.additionalProperties;
}

/** LENIENT-2 */
function weaken(part: Record<string, unknown>): void {
  for (const key of ["not", "if", "then", "else", "maxContains", "unevaluatedItems", "unevaluatedProperties"])
    delete part[key];
  if (!Array.isArray(part.oneOf)) return;
  const { oneOf, allOf } = part;
  part.allOf = [...(Array.isArray(allOf) ? allOf : []), { anyOf: oneOf }];
  delete part.oneOf;
}

/** Every schema in a schema, with its path. */
function partsOf(schema: Record<string, unknown>): [part: Record<string, unknown>, path: string][] {
  const found: [Record<string, unknown>, string][] = [[schema, ""]];
  for (const [part, path] of found) {
    for (const [key, value] of Object.entries(part)) {
      const isMany = (BY_NAME.has(key) && isObject(value)) || (LISTS.has(key) && Array.isArray(value));
      if (isMany) {
        for (const [name, one] of Object.entries(Object(value)))
          if (isObject(one)) found.push([one, `${path}/${key}/${name}`]);
      } else if (SINGLE.has(key) && isObject(value)) found.push([value, `${path}/${key}`]);
    }
  }
  return found;
}
