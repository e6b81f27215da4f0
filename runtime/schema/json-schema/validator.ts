import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { type Cost, costOfCheap, isCheap } from "../cost.ts";
import { isObject } from "../json-object.ts";
import { hasMoreValues, isTooDeep, maxLevels, maxValues, parseBounded } from "../json-size.ts";
import { turnForJson } from "../json-turn.ts";
import { cannotCheck, faultOf, leftOf, type Question } from "./checker.ts";
import { askThread, Unanswered } from "./checker-pool.ts";
import { type Compiled, Dialects } from "./dialects.ts";
import { KeptSchemas } from "./kept-schemas.ts";

/*
 * V1  What is known to cost little is done at once, on the thread that asks: to compile a schema of few parts, and to hold a value
 *     against it that is short enough for its parts and patterns, and has not too many values to be read at once.
 * V2  All else is asked of other threads, which have limits of time and memory, and where nobody keeps another waiting. `by` is the
 *     principal on whose behalf it is asked.
 * V3  No answer within the limits is told as such, and nothing passes.
 */

/** A JSON text that was read and found to fit, or what is wrong with it. */
export type Validation = { kind: "valid"; value: unknown } | { kind: "invalid"; message: string };

/** At once where that costs little. */
export type Soon<T> = T | Promise<T>;

export interface Validator {
  /** Reads arguments, which are a JSON object; an empty text is an empty object. */
  parseArguments(schemaJson: string, argumentsJson: string, by: string, signal?: AbortSignal): Soon<Validation>;
  /** What is wrong with a result, which is any JSON that the schema allows; an empty schema allows all. */
  faultOfResult(schemaJson: string, outputJson: string, by: string, signal?: AbortSignal): Soon<string | undefined>;
  /** What is wrong with a schema; undefined for a good one. */
  faultOfSchema(schemaJson: string, by: string): Soon<string | undefined>;
  /** The same by the dialect's own schema alone, which costs less: for many schemas, of which few are ever used. */
  faultOfShape(schemaJson: string, by: string): Soon<string | undefined>;
  /** What of a schema is not checked, in words, and left to who runs the tool; undefined when all of it is checked. */
  leftUnchecked(schemaJson: string, by: string): Soon<string | undefined>;
  /** What is held in memory. */
  readonly kept: { schemas: number; characters: number };
}

export interface ValidatorOptions {
  /** Whether a schema of which a part cannot be checked is held to the rest, and not refused: for tools of others. */
  isLenient?: boolean;
  /** How many schemas are kept. */
  maxSchemas?: number;
  /** How many characters they may have together. */
  maxCharacters?: number;
}

type Kept = (Extract<Compiled, { kind: "compiled" }> & { cost: Cost }) | { kind: "faulty"; fault: string } | Costly;
interface Costly {
  readonly kind: "costly";
}

/** Each schema is compiled once and kept under its text, within bounds. */
export function createValidator(options: ValidatorOptions = {}): Validator {
  const { isLenient = false, maxSchemas = 2_000, maxCharacters = 8 * 1_024 * 1_024 } = options;
  const shapes = new Dialects(); // for which nothing is held
  const kept = new KeptSchemas<Kept>({ open: () => openCheap(isLenient), maxSchemas, maxCharacters });

  function check(schemaJson: string, { value, text, what, by }: Given): Soon<string | undefined> {
    if (schemaJson === "") return undefined;
    const schema = kept.get(schemaJson);
    if (schema.kind === "faulty") return cannotCheck(what, schema.fault);
    if (schema.kind === "compiled" && isCheap(schema.cost, text.length)) return faultOf(schema.validate, value, what);
    return checkElsewhere(schemaJson, text, what, by);
  }

  function checkElsewhere(schemaJson: string, json: string, what: string, by: string): Promise<string | undefined> {
    return asked({ kind: "check", schemaJson, isLenient, json, what }, by, (why) => cannotCheck(what, why));
  }

  function checkArguments(schemaJson: string, text: string, by: string): Soon<Validation> {
    const parsed = parseJson(text, "the arguments", parseBounded);
    if (parsed.kind === "invalid") return parsed;
    if (!isObject(parsed.value)) return { kind: "invalid", message: "the arguments must be a JSON object" };
    if (isTooDeep(text)) return { kind: "invalid", message: tooDeep };
    const { value } = parsed;
    const validationFrom = (fault: string | undefined): Validation =>
      fault === undefined ? { kind: "valid", value } : { kind: "invalid", message: fault };
    const fault = check(schemaJson, { value, text, what: "arguments", by });
    return fault instanceof Promise ? fault.then(validationFrom) : validationFrom(fault);
  }

  function checkResult(schemaJson: string, text: string, by: string): Soon<string | undefined> {
    const parsed = parseJson(text, "the result", JSON.parse);
    if (parsed.kind === "invalid") return parsed.message;
    return check(schemaJson, { value: parsed.value, text, what: "result", by });
  }

  return {
    get kept() {
      return { schemas: kept.size, characters: kept.characters };
    },
    parseArguments(schemaJson, argumentsJson, by, signal) {
      const text = argumentsJson || "{}";
      return inItsTurn({ text, by, signal }, () => checkArguments(schemaJson, text, by));
    },
    faultOfResult(schemaJson, outputJson, by, signal) {
      if (hasMoreValues(outputJson, maxValues)) return checkElsewhere(schemaJson || "{}", outputJson, "result", by);
      return inItsTurn({ text: outputJson, by, signal }, () => checkResult(schemaJson, outputJson, by));
    },
    faultOfSchema(schemaJson, by) {
      const schema = kept.get(schemaJson);
      if (schema.kind === "costly") return asked({ kind: "schema", schemaJson, isLenient }, by);
      return schema.kind === "faulty" ? schema.fault : undefined;
    },
    leftUnchecked(schemaJson, by) {
      if (schemaJson === "") return undefined;
      const schema = kept.get(schemaJson);
      return schema.kind === "costly" ? asked({ kind: "left", schemaJson, isLenient }, by) : leftOf(schema);
    },
    faultOfShape(schemaJson, by) {
      if (schemaJson.length > CHEAP_SHAPE) return asked({ kind: "shape", schemaJson, isLenient }, by);
      return shapes.faultOfShape(JSON.parse(schemaJson));
    },
  };
}

interface Heavy {
  readonly text: string;
  readonly by: string;
  readonly signal: AbortSignal | undefined;
}

function inItsTurn<T>({ text, by, signal }: Heavy, work: () => Soon<T>): Soon<T> {
  return turnForJson(text, { sender: by, signal })?.then(work) ?? work();
}

/** The shape of as many characters is looked at in a few ms. */
const CHEAP_SHAPE = 4_096;

interface Given {
  readonly value: unknown;
  /** What it was read from. */
  readonly text: string;
  readonly what: string;
  readonly by: string;
}

/** V1 */
function openCheap(isLenient: boolean) {
  const dialects = new Dialects();
  return {
    compile(schemaJson: string): Kept {
      const cost = costOfCheap(schemaJson);
      if (cost === undefined) return { kind: "costly" };
      const compiled = dialects.compile(schemaJson, isLenient);
      return compiled.kind === "compiled" ? { ...compiled, cost } : compiled;
    },
  };
}

/** V3 */
async function asked(question: Question, by: string, told = (why: string) => why): Promise<string | undefined> {
  try {
    return await askThread(question, by);
  } catch (error) {
    if (error instanceof Unanswered) return told(error.message);
    throw error;
  }
}

const tooDeep = `the arguments are nested deeper than ${maxLevels} levels`;

function parseJson(text: string, what: string, parse: (text: string) => unknown): Validation {
  try {
    return { kind: "valid", value: parse(text) };
  } catch (error) {
    return { kind: "invalid", message: `${what} must be valid JSON: ${messageFromUnknown(error)}` };
  }
}
