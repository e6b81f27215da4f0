import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { messageFromUnknown } from "#runtime/failure/failure.ts";

/** What is wrong with the JSON Schema of a tool's arguments; undefined for a good one. An empty text means any object. */
export function faultOfSchema(schemaJson: string): string | undefined {
  if (schemaJson === "") return undefined;
  try {
    const schema: unknown = JSON.parse(schemaJson);
    if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return "it is no JSON object";
    const { $schema, ...rest } = schema as Record<string, unknown>;
    if (rest.type !== undefined && rest.type !== "object")
      return `its type is ${JSON.stringify(rest.type)}, not "object"`;
    validatorFor(String($schema ?? "")).compile(rest);
    return undefined;
  } catch (error) {
    return messageFromUnknown(error);
  }
}

/** A fresh one each time: declarations are rare, and what a validator has compiled it keeps. */
function validatorFor(dialect: string): Ajv {
  const options = { strict: false, logger: false, addUsedSchema: false } as const;
  const validator = /draft-0[67]/.test(dialect) ? new Ajv(options) : new Ajv2020(options);
  addFormats.default(validator);
  return validator;
}
