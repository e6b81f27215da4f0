import { createRequire } from "node:module";
import type { Ajv, Options, ValidateFunction } from "ajv";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { isJsonSchema, isObject, type JsonSchema, jsonFrom } from "../json-object.ts";
import { MAX_TOLD } from "./error-text.ts";
import { lenientSchema } from "./lenient/leniency.ts";

/** `left` is what is not checked, each part with its path. */
export type Compiled =
  | { kind: "compiled"; validate: ValidateFunction; left: readonly string[] }
  | { kind: "faulty"; fault: string };

/** What refers to itself, and to nothing else, has no end. */
export const TOO_DEEP = "the schema leads further down than there is room for";

const SETTINGS: Options = { allErrors: true, strict: false, addUsedSchema: false, logger: false };

/** The drafts of JSON Schema that are read, each by a compiler of its own. */
export class Dialects {
  readonly #compilers = new Map<Draft, Ajv>();

  compile(text: string, isLenient = false): Compiled {
    const schema = jsonFrom(text);
    if (!isJsonSchema(schema)) return { kind: "faulty", fault: "a JSON Schema is an object" };
    const whole = this.#compiled(schema);
    return isLenient && whole.kind === "faulty" && isObject(schema) ? this.#compiledInPart(schema, whole.fault) : whole;
  }

  #compiled(schema: JsonSchema, left: readonly string[] = []): Compiled {
    try {
      const { ajv, plain } = this.#readBy(schema);
      return { kind: "compiled", validate: ajv.compile(plain), left };
    } catch (error) {
      return { kind: "faulty", fault: error instanceof RangeError ? TOO_DEEP : messageFromUnknown(error) };
    }
  }

  /** Where no part of it can be told from the rest, all of it is left. */
  #compiledInPart(schema: Record<string, unknown>, fault: string): Compiled {
    const { ajv } = this.#readBy(schema);
    const misplaced = (part: Record<string, unknown>) =>
      ajv.validateSchema(withoutDialect(part)) ? [] : (ajv.errors ?? []).map(({ instancePath }) => instancePath);
    const { schema: part, left } = lenientSchema(schema, misplaced);
    const compiled = this.#compiled(part, left);
    return compiled.kind === "compiled" ? compiled : this.#compiled({}, [`all of it: ${fault}`]);
  }

  /** What is wrong by the dialect's own schema; undefined when nothing is. */
  faultOfShape(schema: JsonSchema): string | undefined {
    const { ajv, plain } = this.#readBy(schema);
    try {
      if (ajv.validateSchema(plain)) return undefined;
      return ajv.errorsText(ajv.errors?.slice(0, MAX_TOLD), { dataVar: "schema" });
    } catch (error) {
      return messageFromUnknown(error);
    }
  }

  /** A dialect that is named in another spelling, or that only its vocabulary sets apart, is read by the nearest draft. */
  #readBy(schema: JsonSchema) {
    const isDraft07 = isObject(schema) && /draft-0[67]/.test(String(schema.$schema ?? ""));
    const ajv = this.#compilerOf(isDraft07 ? "draft07" : "draft2020");
    return { ajv, plain: isObject(schema) ? withoutDialect(schema) : schema };
  }

  #compilerOf(draft: Draft): Ajv {
    return getOrInsertComputed(this.#compilers, draft, openCompiler);
  }
}

type Draft = "draft07" | "draft2020";

/** Loaded with the first schema: with its own schemas the library takes 10 MB, and many processes never read one. */
function openCompiler(draft: Draft): Ajv {
  const require = createRequire(import.meta.url);
  const compilers = {
    draft07: () => (require("ajv") as typeof import("ajv")).Ajv,
    draft2020: () => (require("ajv/dist/2020.js") as typeof import("ajv/dist/2020.js")).Ajv2020,
  };
  const compiler = new (compilers[draft]())(SETTINGS);
  (require("ajv-formats") as typeof import("ajv-formats")).default(compiler);
  return compiler;
}

/** Under a name of its own, since the compiler finds no `#` in one without; `$async` makes its checks give promises. */
function withoutDialect({ $schema: _, $async: __, ...schema }: Record<string, unknown>): Record<string, unknown> {
  return typeof schema.$id === "string" && schema.$id !== "" ? schema : { ...schema, $id: "https://schema.invalid/" };
}
