import type { ErrorObject, ValidateFunction } from "ajv";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { messageFromError } from "#runtime/schema/json-schema/error-text.ts";

/** What a file holds, or everything that is wrong with its form, each fault with its path. */
export type Parsed<T> =
  /** `placed` gives a fault of what it holds with its place in the file, where that is another. */
  | { kind: "parsed"; value: T; placed?: (fault: string) => string }
  | { kind: "faulty"; faults: string[]; name?: unknown };

interface FormOptions<F> {
  /** In place of patterns. */
  wordsByPattern?: Readonly<Record<string, string>>;
  placed?: (file: F, fault: string) => string;
}

/**
 * Reads JSON text of a form that is given as a compiled JSON Schema, and reports all faults of that at once. `read` gives what it
 * means, and throws for what is none of the contract's, such as a duration that is longer than it can say.
 */
export function createFileForm<F, T>(
  validate: ValidateFunction<F>,
  read: (file: F) => T,
  { wordsByPattern = {}, placed }: FormOptions<F> = {},
): (text: string) => Parsed<T> {
  return (text) => {
    let value: unknown;
    try {
      value = JSON.parse(text.replace(/^\uFEFF/, "")); // editors of some systems write a byte order mark
    } catch (error) {
      return { kind: "faulty", faults: [`is no JSON: ${messageFromUnknown(error)}`] };
    }
    const name = isObject(value) ? value.name : undefined;
    if (!validate(value)) return { kind: "faulty", faults: (validate.errors ?? []).map(wordsOf), name };
    const file = value;
    try {
      return { kind: "parsed", value: read(file), ...(placed && { placed: (fault) => placed(file, fault) }) };
    } catch (error) {
      return { kind: "faulty", faults: [messageFromUnknown(error)], name };
    }
  };

  function wordsOf(error: ErrorObject): string {
    const words = error.keyword === "pattern" ? wordsByPattern[String(error.params.pattern)] : undefined;
    return messageFromError(words === undefined ? error : { ...error, message: words }, "");
  }
}
