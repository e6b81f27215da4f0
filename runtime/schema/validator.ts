import { Ajv as Draft07, type ErrorObject, type ValidateFunction } from "ajv";
import { Ajv2020 as Draft2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { effortOf, unescaped } from "./effort.ts";
import { createPatternEngine, PatternTooSlow } from "./patterns.ts";
import { createTimeLimit, OutOfTime } from "./time-limit.ts";

/** A JSON text that was read and found to fit, or what is wrong with it. */
export type Validation = { kind: "valid"; value: unknown } | { kind: "invalid"; message: string };

export interface Validator {
  /** Reads arguments, which are a JSON object; an empty text is an empty object. */
  parseArguments(schemaJson: string, argumentsJson: string): Validation;
  /** Reads a result, which is any JSON that the schema allows; an empty schema allows all. */
  parseResult(schemaJson: string, outputJson: string): Validation;
  /** What is wrong with a schema; undefined for a good one. */
  faultOfSchema(schemaJson: string): string | undefined;
  /** The same by the dialect's own schema alone, which costs little: for many schemas, of which few are ever used. */
  faultOfShape(schema: object | boolean): string | undefined;
  /** What is held in memory. */
  readonly kept: { schemas: number; characters: number };
}

type Compiled =
  | { kind: "compiled"; validate: ValidateFunction; effort: number; remove: () => void }
  | { kind: "faulty"; fault: string };

const MAX_TOLD = 5;

/** A validation has this time for its patterns together, and one that could be long, for all that it does. */
const LIMIT_MS = 200;
/** As many looks at values are over in far less than that. */
const QUICK_LOOKS = 2_000_000;

export interface ValidatorOptions {
  /** How many schemas are kept, the last used ones. */
  maxSchemas?: number;
  /** How many characters they may have together. */
  maxCharacters?: number;
}

/** Each schema is compiled once and kept under its text, the last used of them. */
export function createValidator(options: ValidatorOptions = {}): Validator {
  const { maxSchemas = 10_000, maxCharacters = 64 * 1_024 * 1_024 } = options;
  const patterns = createPatternEngine(LIMIT_MS);
  const limit = createTimeLimit(LIMIT_MS);
  const code = { regExp: patterns.engine };
  const settings = { allErrors: true, strict: false, addUsedSchema: false, logger: false, code } as const;
  const draft2020 = new Draft2020(settings);
  const draft07 = new Draft07(settings);
  addFormats.default(draft2020);
  addFormats.default(draft07);
  const compiledByText = new Map<string, Compiled>();
  let characters = 0;

  function compile(text: string): Compiled {
    try {
      const schema: unknown = JSON.parse(text);
      if (typeof schema !== "boolean" && !isObject(schema))
        return { kind: "faulty", fault: "a JSON Schema is an object" };
      const { ajv, plain } = readBy(schema);
      return {
        kind: "compiled",
        validate: ajv.compile(plain),
        effort: effortOf(plain),
        remove: () => isObject(plain) && ajv.removeSchema(plain),
      };
    } catch (error) {
      return { kind: "faulty", fault: messageFromUnknown(error) };
    }
  }

  /** A dialect that is named in another spelling, or that only its vocabulary sets apart, is read by the nearest draft. */
  function readBy(schema: Record<string, unknown> | boolean) {
    const isDraft07 = isObject(schema) && /draft-0[67]/.test(String(schema.$schema ?? ""));
    return { ajv: isDraft07 ? draft07 : draft2020, plain: isObject(schema) ? withoutDialect(schema) : schema };
  }

  function compiled(text: string): Compiled {
    const found = compiledByText.get(text);
    const schema = found ?? compile(text);
    if (found === undefined) characters += text.length;
    else compiledByText.delete(text); // the last used stands last
    compiledByText.set(text, schema);
    while (compiledByText.size > maxSchemas || (characters > maxCharacters && compiledByText.size > 1)) forgetOldest();
    return schema;
  }

  function forgetOldest(): void {
    const [text, oldest] = compiledByText.entries().next().value!;
    compiledByText.delete(text);
    characters -= text.length;
    if (oldest.kind === "compiled") oldest.remove();
  }

  function check(schemaJson: string, { value, length }: Parsed, what: string): Validation {
    if (schemaJson === "") return { kind: "valid", value };
    const schema = compiled(schemaJson);
    if (schema.kind === "faulty") return { kind: "invalid", message: `${what} cannot be checked: ${schema.fault}` };
    patterns.begin();
    limit.begin();
    const isQuick = schema.effort * length <= QUICK_LOOKS;
    try {
      if (isQuick ? schema.validate(value) : limit.run(() => schema.validate(value))) return { kind: "valid", value };
    } catch (error) {
      const isBeyond = error instanceof PatternTooSlow || error instanceof OutOfTime || error instanceof RangeError;
      if (isBeyond) return { kind: "invalid", message: `${what} cannot be checked: ${error.message}` };
      throw error;
    }
    return { kind: "invalid", message: messageFromErrors(schema.validate.errors ?? [], what) };
  }

  return {
    get kept() {
      return { schemas: compiledByText.size, characters };
    },
    parseArguments(schemaJson, argumentsJson) {
      const parsed = parseJson(argumentsJson || "{}", "the arguments");
      if (parsed.kind === "invalid") return parsed;
      if (!isObject(parsed.value)) return { kind: "invalid", message: "the arguments must be a JSON object" };
      return check(schemaJson, { value: parsed.value, length: argumentsJson.length }, "arguments");
    },
    parseResult(schemaJson, outputJson) {
      const parsed = parseJson(outputJson, "the result");
      if (parsed.kind === "invalid") return parsed;
      return check(schemaJson, { value: parsed.value, length: outputJson.length }, "result");
    },
    faultOfSchema(schemaJson) {
      const schema = compiled(schemaJson);
      return schema.kind === "faulty" ? schema.fault : undefined;
    },
    faultOfShape(schema) {
      const { ajv, plain } = readBy(isObject(schema) ? schema : schema === true);
      try {
        return ajv.validateSchema(plain)
          ? undefined
          : ajv.errorsText(ajv.errors?.slice(0, MAX_TOLD), { dataVar: "schema" });
      } catch (error) {
        return messageFromUnknown(error);
      }
    },
  };
}

/** Under a name of its own, since the compiler finds no `#` in a schema without one. */
function withoutDialect({ $schema: _, ...schema }: Record<string, unknown>): Record<string, unknown> {
  return typeof schema.$id === "string" && schema.$id !== "" ? schema : { ...schema, $id: "https://schema.invalid/" };
}

interface Parsed {
  readonly value: unknown;
  /** Of the text that it was. */
  readonly length: number;
}

function parseJson(text: string, what: string): Validation {
  try {
    return { kind: "valid", value: JSON.parse(text) };
  } catch (error) {
    return { kind: "invalid", message: `${what} must be valid JSON: ${messageFromUnknown(error)}` };
  }
}

function messageFromErrors(errors: ErrorObject[], what: string): string {
  const told = errors.slice(0, MAX_TOLD).map((error) => messageFromError(error, what));
  if (errors.length > MAX_TOLD) told.push(`and ${errors.length - MAX_TOLD} more`);
  return told.join("; ");
}

export function messageFromError(error: ErrorObject, root: string): string {
  const { additionalProperty, unevaluatedProperty, allowedValues, allowedValue } = error.params;
  const extra = additionalProperty ?? unevaluatedProperty;
  const path = pathFromPointer(error.instancePath, root);
  if (extra !== undefined) return `${pathFromPointer(`${error.instancePath}/${extra}`, root)}: is not a known field`;
  const values = allowedValues ?? (allowedValue === undefined ? undefined : [allowedValue]);
  return `${path}: ${error.message}${values === undefined ? "" : ` (${values.map((value: unknown) => JSON.stringify(value)).join(", ")})`}`;
}

/** `/tools/use/0` → `tools.use[0]`, below the root's name. */
function pathFromPointer(pointer: string, root: string): string {
  const steps = pointer.split("/").slice(1).map(unescaped);
  const path = steps.map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`)).join("");
  return root === "" ? path.replace(/^\./, "") || "the file" : root + path;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
