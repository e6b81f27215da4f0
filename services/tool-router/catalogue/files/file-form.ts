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

interface FormOptions<F> {
  /** In place of patterns. */
  wordsByPattern?: Readonly<Record<string, string>>;
  placed?: (file: F, fault: string) => string;
}

/**
 * Reads JSON text of a form that is given as a compiled JSON Schema, and reports all faults at once. `read` gives what it means, and throws
 * for what is none of the contract's, such as a duration that is longer than it can say.
 */
export function createFileForm<F, T>(
  validate: ValidateFunction<F>,
  read: (file: F, ofFaulty?: { ignoreUnknownFields: true }) => T,
  { wordsByPattern = {}, placed }: FormOptions<F> = {},
): (text: string) => Parsed<T> {
  const placedIn = (file: F) => placed && { placed: (fault: string) => placed(file, fault) };
  return (text) => {
    let value: unknown;
    try {
      value = JSON.parse(text.replace(/^\uFEFF/, "")); // editors of some systems write a byte order mark
    } catch (error) {
      return { kind: "faulty", faults: [`is no JSON: ${messageFromUnknown(error)}`] };
    }
    try {
      if (validate(value)) return { kind: "parsed", value: read(value), ...placedIn(value) };
    } catch (error) {
      return { kind: "faulty", faults: [messageFromUnknown(error)] };
    }
    const errors = validate.errors ?? [];
    const faults = errors.map((error) => {
      const words = error.keyword === "pattern" ? wordsByPattern[String(error.params.pattern)] : undefined;
      return messageFromError(words === undefined ? error : { ...error, message: words }, "");
    });
    const rest = withoutFaulty(value, errors) as F;
    try {
      return { kind: "faulty", faults, readable: read(rest, { ignoreUnknownFields: true }), ...placedIn(rest) };
    } catch {
      return { kind: "faulty", faults }; // of a form that nothing can be read from
    }
  };
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
