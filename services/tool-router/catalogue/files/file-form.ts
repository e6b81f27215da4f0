import type { ErrorObject, ValidateFunction } from "ajv";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { unescaped } from "#runtime/schema/cost/effort.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { messageFromError } from "#runtime/schema/json-schema/error-text.ts";

/**
 * What a file holds, or everything that is wrong with its form, each fault with its path; and where it could be read all the same,
 * what it seems to hold, so that the rest of its faults can be told with these.
 */
export type Parsed<T> = ({ kind: "parsed"; value: T } | { kind: "faulty"; faults: string[]; readable?: T }) & {
  /** A fault of what it holds, with its place in the file where that is another. */
  placed?: (fault: string) => string;
};

/** Reads JSON text of a form that is given as a compiled JSON Schema, and reports all faults at once. Patterns may be put in words. */
export function createFileForm<T>(
  validate: ValidateFunction<T>,
  wordsByPattern: Readonly<Record<string, string>> = {},
): (text: string) => Parsed<T> {
  return (text) => {
    let value: unknown;
    try {
      value = JSON.parse(text.replace(/^\uFEFF/, "")); // editors of some systems write a byte order mark
    } catch (error) {
      return { kind: "faulty", faults: [`is no JSON: ${messageFromUnknown(error)}`] };
    }
    if (validate(value)) return { kind: "parsed", value };
    const faults = (validate.errors ?? []).map((error) => {
      const words = error.keyword === "pattern" ? wordsByPattern[String(error.params.pattern)] : undefined;
      return messageFromError(words === undefined ? error : { ...error, message: words }, "");
    });
    return { kind: "faulty", faults, readable: withoutFaulty(value, validate.errors ?? []) as T };
  };
}

/** What fits the form of files may still be none of the contract's, such as a duration that is longer than it can say. */
export function readContract<T>(read: () => T): Parsed<T> {
  try {
    return { kind: "parsed", value: read() };
  } catch (error) {
    return { kind: "faulty", faults: [messageFromUnknown(error)] };
  }
}

/** Faults of an object that are no fault of its values. */
const OF_THE_OBJECT: ReadonlySet<string> = new Set(["required", "additionalProperties", "oneOf"]);

/**
 * What is left when each value that does not fit is taken out, so that the rest can be read. In a list it leaves an empty text
 * in its place, so that the others keep theirs.
 */
function withoutFaulty(value: unknown, errors: readonly ErrorObject[]): unknown {
  const rest: unknown = structuredClone(value);
  for (const { keyword, instancePath } of errors) {
    const steps = instancePath.split("/").slice(1).map(unescaped);
    const last = steps.pop();
    if (last === undefined || OF_THE_OBJECT.has(keyword)) continue;
    const parent = steps.reduce<unknown>(
      (at, step) => (isObject(at) || Array.isArray(at) ? Reflect.get(at, step) : undefined),
      rest,
    );
    if (Array.isArray(parent)) parent[Number(last)] = "";
    else if (isObject(parent)) delete parent[last];
  }
  return rest;
}
