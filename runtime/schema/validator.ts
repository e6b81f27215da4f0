import { Ajv as Draft07, type ErrorObject, type ValidateFunction } from "ajv";
import { Ajv2020 as Draft2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { createPatternEngine, PatternTooSlow } from "./patterns.ts";

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
}

type Compiled =
  | { kind: "compiled"; validate: ValidateFunction; remove: () => void }
  | { kind: "faulty"; fault: string };

const MAX_TOLD = 5;

/** Each schema is compiled once and kept under its text, the `maxSchemas` last used of them. */
export function createValidator(maxSchemas = 10_000): Validator {
  const patterns = createPatternEngine();
  const code = { regExp: patterns.engine };
  const options = { allErrors: true, strict: false, addUsedSchema: false, logger: false, code } as const;
  const draft2020 = new Draft2020(options);
  const draft07 = new Draft07(options);
  addFormats.default(draft2020);
  addFormats.default(draft07);
  const compiledByText = new Map<string, Compiled>();

  function compile(text: string): Compiled {
    try {
      const schema: unknown = JSON.parse(text);
      if (typeof schema !== "boolean" && !isObject(schema))
        return { kind: "faulty", fault: "a JSON Schema is an object" };
      const { ajv, plain } = readBy(schema);
      return {
        kind: "compiled",
        validate: ajv.compile(plain),
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
    if (found !== undefined) return found;
    const made = compile(text);
    compiledByText.set(text, made);
    if (compiledByText.size > maxSchemas) forgetOldest();
    return made;
  }

  function forgetOldest(): void {
    const [text, oldest] = compiledByText.entries().next().value!;
    compiledByText.delete(text);
    if (oldest.kind === "compiled") oldest.remove();
  }

  function check(schemaJson: string, value: unknown, what: string): Validation {
    if (schemaJson === "") return { kind: "valid", value };
    const schema = compiled(schemaJson);
    if (schema.kind === "faulty") return { kind: "invalid", message: `${what} cannot be checked: ${schema.fault}` };
    patterns.begin();
    try {
      if (schema.validate(value)) return { kind: "valid", value };
    } catch (error) {
      if (error instanceof PatternTooSlow)
        return { kind: "invalid", message: `${what} cannot be checked: ${error.message}` };
      throw error;
    }
    return { kind: "invalid", message: messageFromErrors(schema.validate.errors ?? [], what) };
  }

  return {
    parseArguments(schemaJson, argumentsJson) {
      const parsed = parseJson(argumentsJson || "{}", "the arguments");
      if (parsed.kind === "invalid") return parsed;
      if (!isObject(parsed.value)) return { kind: "invalid", message: "the arguments must be a JSON object" };
      return check(schemaJson, parsed.value, "arguments");
    },
    parseResult(schemaJson, outputJson) {
      const parsed = parseJson(outputJson, "the result");
      return parsed.kind === "invalid" ? parsed : check(schemaJson, parsed.value, "result");
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

function withoutDialect({ $schema: _, ...schema }: Record<string, unknown>): Record<string, unknown> {
  return schema;
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

/** A step of a JSON pointer as it is. */
export function unescaped(step: string): string {
  return step.replaceAll("~1", "/").replaceAll("~0", "~");
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
