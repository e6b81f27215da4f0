import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { isObject, type JsonSchema } from "../json-object.ts";
import { isTooDeep, maxLevels } from "./depth.ts";
import { type Compiled, Dialects } from "./dialects.ts";
import { messageFromErrors } from "./error-text.ts";
import { KeptSchemas } from "./kept-schemas.ts";
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
  faultOfShape(schema: JsonSchema): string | undefined;
  /** What is held in memory. */
  readonly kept: { schemas: number; characters: number };
}

/** A validation has this time for its patterns together, and one that could be long, for all that it does. */
const LIMIT_MS = 200;
/** As many looks at values are over in far less than that. */
const QUICK_LOOKS = 2_000_000;

export interface ValidatorOptions {
  /** How many schemas are kept. */
  maxSchemas?: number;
  /** How many characters they may have together. */
  maxCharacters?: number;
}

/** Each schema is compiled once and kept under its text, within bounds. */
export function createValidator(options: ValidatorOptions = {}): Validator {
  const { maxSchemas = 10_000, maxCharacters = 8 * 1_024 * 1_024 } = options;
  const patterns = createPatternEngine(LIMIT_MS);
  const limit = createTimeLimit(LIMIT_MS);
  const dialects = new Dialects(patterns); // of shapes alone, for which nothing is held
  const kept = new KeptSchemas({ open: () => new Dialects(patterns), maxSchemas, maxCharacters });

  function check(schemaJson: string, { value, length }: Parsed, what: string): Validation {
    if (schemaJson === "") return { kind: "valid", value };
    const schema = kept.get(schemaJson);
    if (schema.kind === "faulty") return { kind: "invalid", message: `${what} cannot be checked: ${schema.fault}` };
    try {
      if (fits(schema, { value, length })) return { kind: "valid", value };
    } catch (error) {
      const fault = faultOfCheck(error);
      if (fault === undefined) throw error;
      return { kind: "invalid", message: `${what} cannot be checked: ${fault}` };
    }
    return { kind: "invalid", message: messageFromErrors(schema.validate.errors ?? [], what) };
  }

  function fits({ validate, effort }: Extract<Compiled, { kind: "compiled" }>, { value, length }: Parsed): boolean {
    patterns.begin();
    limit.begin();
    const isQuick = effort * length <= QUICK_LOOKS;
    return isQuick ? validate(value) : limit.run(() => validate(value));
  }

  return {
    get kept() {
      return { schemas: kept.size, characters: kept.characters };
    },
    parseArguments(schemaJson, argumentsJson) {
      const parsed = parseJson(argumentsJson || "{}", "the arguments");
      if (parsed.kind === "invalid") return parsed;
      if (!isObject(parsed.value)) return { kind: "invalid", message: "the arguments must be a JSON object" };
      if (isTooDeep(argumentsJson)) return { kind: "invalid", message: tooDeep };
      return check(schemaJson, { value: parsed.value, length: argumentsJson.length }, "arguments");
    },
    parseResult(schemaJson, outputJson) {
      const parsed = parseJson(outputJson, "the result");
      if (parsed.kind === "invalid") return parsed;
      return check(schemaJson, { value: parsed.value, length: outputJson.length }, "result");
    },
    faultOfSchema(schemaJson) {
      const schema = kept.get(schemaJson);
      return schema.kind === "faulty" ? schema.fault : undefined;
    },
    faultOfShape: (schema) => dialects.faultOfShape(schema),
  };
}

const tooDeep = `the arguments are nested deeper than ${maxLevels} levels`;

/** Undefined for an error that is no word on what was checked. */
function faultOfCheck(error: unknown): string | undefined {
  if (error instanceof RangeError) return "the schema leads further down than there is room for";
  return error instanceof PatternTooSlow || error instanceof OutOfTime ? error.message : undefined;
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
