import { Ajv as Draft07, type Options, type ValidateFunction } from "ajv";
import { Ajv2020 as Draft2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { isJsonSchema, isObject, type JsonSchema } from "../json-object.ts";
import { MAX_TOLD } from "./error-text.ts";

export type Compiled = { kind: "compiled"; validate: ValidateFunction } | { kind: "faulty"; fault: string };

const SETTINGS: Options = { allErrors: true, strict: false, addUsedSchema: false, logger: false };

/** The drafts of JSON Schema that are read, each by a compiler of its own. */
export class Dialects {
  readonly #draft2020 = new Draft2020(SETTINGS);
  readonly #draft07 = new Draft07(SETTINGS);

  constructor() {
    addFormats.default(this.#draft2020);
    addFormats.default(this.#draft07);
  }

  compile(text: string): Compiled {
    try {
      const schema: unknown = JSON.parse(text);
      if (!isJsonSchema(schema)) return { kind: "faulty", fault: "a JSON Schema is an object" };
      const { ajv, plain } = this.#readBy(schema);
      return { kind: "compiled", validate: ajv.compile(plain) };
    } catch (error) {
      return { kind: "faulty", fault: messageFromUnknown(error) };
    }
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
    const ajv = isDraft07 ? this.#draft07 : this.#draft2020;
    return { ajv, plain: isObject(schema) ? withoutDialect(schema) : schema };
  }
}

/** Under a name of its own, since the compiler finds no `#` in a schema without one. */
function withoutDialect({ $schema: _, ...schema }: Record<string, unknown>): Record<string, unknown> {
  return typeof schema.$id === "string" && schema.$id !== "" ? schema : { ...schema, $id: "https://schema.invalid/" };
}
