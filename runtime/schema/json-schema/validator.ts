import { HEAVY_VALUES } from "#runtime/collections/turns/own-turn.ts";
import { type Cost, costOfCheap, isCheap } from "../cost/cost.ts";
import { hasMoreValues, isTooDeep, maxLevels, maxToolValues, maxValues, tooMany } from "../json/json-size.ts";
import { cannotCheck, faultOf, leftOf, parsed, type Question } from "./checker.ts";
import { type Asker, askThread, Unanswered } from "./checker-pool.ts";
import { type Compiled, Dialects } from "./dialects.ts";
import { KeptSchemas } from "./kept-schemas.ts";

/*
 * validator-1  What is known to cost little is done at once, on the thread that asks: to compile a schema of few parts, to read a text of
 *     few values, and to hold them against it where it is short enough for the schema's parts and patterns.
 * validator-2  All else is asked of other threads, which have limits of time and memory, and where nobody keeps another waiting. `by` is
 *     the principal on whose behalf it is asked.
 * validator-3  No answer within the limits is told as such, and nothing passes.
 */

/** At once where that costs little. */
export type Soon<T> = T | Promise<T>;

export interface Validator {
  /** What is wrong with arguments, which are a JSON object; an empty text is an empty object. An aborted signal ends the waiting for a thread. */
  faultOfArguments(
    schemaJson: string,
    argumentsJson: string,
    by: string,
    signal?: AbortSignal,
  ): Soon<string | undefined>;
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

type Kept =
  | (Extract<Compiled, { kind: "compiled" }> & { cost: Cost })
  | { kind: "faulty"; fault: string }
  | { kind: "costly" };
/** Each schema is compiled once and kept under its text, within bounds. */
export function createValidator(options: ValidatorOptions = {}): Validator {
  const { isLenient = false, maxSchemas = 2_000, maxCharacters = 8 * 1_024 * 1_024 } = options;
  const shapes = new Dialects(); // for which nothing is held
  const kept = new KeptSchemas<Kept>({ open: () => openCheap(isLenient), maxSchemas, maxCharacters });

  function check(given: Given): Soon<string | undefined> {
    const { schemaJson, text, what } = given;
    if (hasMoreValues(text, HEAVY_VALUES)) return checkElsewhere(given);
    const schema = schemaJson === "" ? undefined : kept.get(schemaJson);
    if (schema?.kind === "costly") return checkElsewhere(given);
    if (schema?.kind === "compiled" && !isCheap(schema.cost, text)) return checkElsewhere(given);
    const { value, fault } = parsed(text, what);
    if (fault !== undefined || schema === undefined) return fault;
    return schema.kind === "compiled" ? faultOf(schema.validate, value, what) : cannotCheck(what, schema.fault);
  }

  function checkElsewhere({ schemaJson, text: json, what, by, signal }: Given): Promise<string | undefined> {
    const question: Question = { kind: "check", schemaJson: schemaJson || "{}", isLenient, json, what };
    return asked(question, { by, signal, isPatient: what === "result", told: (why) => cannotCheck(what, why) });
  }

  return {
    get kept() {
      return { schemas: kept.size, characters: kept.characters };
    },
    faultOfArguments(schemaJson, argumentsJson, by, signal) {
      const text = argumentsJson || "{}";
      const given = { text, what: "arguments", by, signal } as const;
      if (hasMoreValues(text, maxValues)) return `the arguments have ${tooMany(maxValues)}`;
      if (isTooDeep(text)) return tooDeep;
      if (/^\s*\{/.test(text)) return check({ ...given, schemaJson });
      const noJson = check({ ...given, schemaJson: "" });
      const told = (fault: string | undefined) => fault ?? "the arguments must be a JSON object";
      return noJson instanceof Promise ? noJson.then(told) : told(noJson);
    },
    faultOfResult(schemaJson, text, by, signal) {
      if (hasMoreValues(text, maxToolValues)) return `the result has ${tooMany(maxToolValues)}`;
      return check({ schemaJson, text, what: "result", by, signal });
    },
    faultOfSchema(schemaJson, by) {
      const schema = kept.get(schemaJson);
      if (schema.kind === "costly") return asked({ kind: "schema", schemaJson, isLenient }, { by });
      return schema.kind === "faulty" ? schema.fault : undefined;
    },
    leftUnchecked(schemaJson, by) {
      if (schemaJson === "") return undefined;
      const schema = kept.get(schemaJson);
      return schema.kind === "costly" ? asked({ kind: "left", schemaJson, isLenient }, { by }) : leftOf(schema);
    },
    faultOfShape(schemaJson, by) {
      if (schemaJson.length > CHEAP_SHAPE) return asked({ kind: "shape", schemaJson, isLenient }, { by });
      return shapes.faultOfShape(JSON.parse(schemaJson));
    },
  };
}

/** The shape of as many characters is looked at in a few ms. */
const CHEAP_SHAPE = 4_096;

interface Given {
  readonly schemaJson: string;
  readonly text: string;
  readonly what: "arguments" | "result";
  readonly by: string;
  readonly signal: AbortSignal | undefined;
}

/** validator-1 */
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

interface Asking extends Asker {
  /** validator-3; what is told where there is no answer. */
  readonly told?: (why: string) => string;
}

async function asked(question: Question, { told = (why) => why, ...asking }: Asking): Promise<string | undefined> {
  try {
    return await askThread(question, asking);
  } catch (error) {
    if (error instanceof Unanswered) return told(error.message);
    throw error;
  }
}

const tooDeep = `the arguments are nested deeper than ${maxLevels} levels`;
