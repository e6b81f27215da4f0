import type { ValidateFunction } from "ajv";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { JsonSchema } from "../json-object.ts";
import { type Compiled, Dialects, TOO_DEEP } from "./dialects.ts";
import { messageFromErrors } from "./error-text.ts";
import { KeptSchemas } from "./kept-schemas.ts";
import { createTimeLimit, OutOfTime } from "./time-limit.ts";

/** What is asked of a schema, or of JSON by it; `what` is the name of the JSON in the answer. */
export type Question = { readonly schemaJson: string; readonly isLenient: boolean } & (
  | { kind: "check"; json: string; what: string }
  | { kind: "schema" }
  | { kind: "left" }
  | { kind: "shape" }
);

/** What is wrong, undefined when nothing is; or which limit of time was reached. */
export type Finding =
  | { kind: "found"; fault: string | undefined }
  | { kind: "slow"; step: "compile" | "check" | "memory" };

export interface CheckerLimits {
  compileMs: number;
  checkMs: number;
  maxSchemas: number;
  maxCharacters: number;
}

/** Answers what may cost much, on the thread that it is called on, each step within its time. */
export function createChecker({ compileMs, checkMs, ...bounds }: CheckerLimits): (question: Question) => Finding {
  const strict = new KeptSchemas<Compiled>({ open: () => new Dialects(), ...bounds });
  const lenient = new KeptSchemas<Compiled>({ open: openLenient, ...bounds });
  let shapes = new Dialects();
  const limits = { compile: createTimeLimit(compileMs), check: createTimeLimit(checkMs) };

  /** A compiler that was stopped in its work is in no state that anybody knows. */
  function forget(): void {
    strict.forget();
    lenient.forget();
    shapes = new Dialects();
  }

  function compiling<T>(work: () => T): T {
    try {
      return limits.compile.run(work, forget);
    } catch (error) {
      forget();
      throw error instanceof OutOfTime ? new SlowCompile() : error;
    }
  }

  function checking(validate: ValidateFunction, json: string, what: string): string | undefined {
    const { value, fault } = parsed(json, what);
    if (fault !== undefined) return fault;
    return limits.check.run(() => faultOf(validate, value, what));
  }

  function faultBy(question: Question): string | undefined {
    const { kind, schemaJson } = question;
    if (kind === "shape") {
      const schema: JsonSchema = JSON.parse(schemaJson);
      return compiling(() => shapes.faultOfShape(schema));
    }
    const schema = compiling(() => (question.isLenient ? lenient : strict).get(schemaJson));
    if (kind === "left") return leftOf(schema);
    if (kind === "schema") return schema.kind === "faulty" ? schema.fault : undefined;
    if (schema.kind === "faulty") return cannotCheck(question.what, schema.fault);
    return checking(schema.validate, question.json, question.what);
  }

  return (question) => {
    try {
      return { kind: "found", fault: faultBy(question) };
    } catch (error) {
      if (!(error instanceof OutOfTime)) throw error;
      return { kind: "slow", step: error instanceof SlowCompile ? "compile" : "check" };
    }
  };
}

function openLenient() {
  const dialects = new Dialects();
  return { compile: (text: string) => dialects.compile(text, true) };
}

/** What of a schema is not checked, in words; undefined when all of it is. */
export function leftOf(schema: Compiled): string | undefined {
  if (schema.kind === "faulty") return `all of it: ${schema.fault}`;
  return schema.left.length === 0 ? undefined : schema.left.join("; ");
}

class SlowCompile extends OutOfTime {}

/** What is wrong with a value by a compiled schema. */
export function faultOf(validate: ValidateFunction, value: unknown, what: string): string | undefined {
  try {
    return validate(value) ? undefined : messageFromErrors(validate.errors ?? [], what);
  } catch (error) {
    if (error instanceof RangeError) return cannotCheck(what, TOO_DEEP);
    throw error;
  }
}

/** What there is to be checked. */
export function parsed(json: string, what: string): { value?: unknown; fault?: string } {
  try {
    return { value: JSON.parse(json) };
  } catch (error) {
    return { fault: `the ${what} must be valid JSON: ${messageFromUnknown(error)}` };
  }
}

export function cannotCheck(what: string, why: string): string {
  return `${what} cannot be checked: ${why}`;
}
