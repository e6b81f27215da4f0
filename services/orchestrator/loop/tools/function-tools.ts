/**
 * Tools that the client of a run executes (LOOP-5). Their schemas are checked when the run is created (with the path of
 * each fault; 65,536 characters each, no references to elsewhere). Arguments that do not fit are an error for the model. Outputs that
 * do not fit are refused by their calls (`RESULT_INVALID`), and none of their request is stored (LOOP-7, LOOP-8).
 *
 * A schema is compiled when a call first needs it, whichever run brings it, and kept under its text within a bound: to judge it costs
 * less, and no run holds anything.
 */

import { setImmediate } from "node:timers/promises";
import type { FunctionTool } from "#gen/toolbus/run/v1/run_pb.ts";
import { argumentsRefused, type FaultOfSchema, faultOfToolSchema } from "#runtime/schema/json-schema/tool-schema.ts";
import { createValidator } from "#runtime/schema/json-schema/validator.ts";
import { faultOfUse } from "#runtime/schema/unusable.ts";

/** To compile it takes time that grows with the text, and nothing else goes on meanwhile. */
const maxCharacters = 64 * 1_024;

/** Some 10 MB at most. */
const validator = createValidator({ maxSchemas: 300, maxCharacters: 512 * 1_024 });

/** What is wrong with the schemas, each fault with its path; others have their turn between two of them. */
export async function faultsOfFunctionTools(tools: readonly FunctionTool[]): Promise<string[]> {
  const faults: string[] = [];
  for (const [index, { inputSchemaJson, outputSchemaJson }] of tools.entries()) {
    for (const [field, text, place] of [
      ["input_schema_json", inputSchemaJson, "arguments"],
      ["output_schema_json", outputSchemaJson, "results"],
    ] as const) {
      if (text === "") continue;
      const faultOf: FaultOfSchema = (schema) => validator.faultOfShape(schema) ?? faultOfUse(schema);
      const fault = faultOfToolSchema(text, place, { maxCharacters, faultOf });
      if (fault !== undefined) faults.push(`options.function_tools[${index}].${field}: ${fault}`);
      await setImmediate();
    }
  }
  return faults;
}

/** The error for the model if its arguments do not fit. */
export function faultOfArguments({ name, inputSchemaJson }: FunctionTool, argumentsJson: string): string | undefined {
  const validation = validator.parseArguments(usable(inputSchemaJson), argumentsJson.trim());
  return validation.kind === "invalid" ? argumentsRefused(name, validation.message) : undefined;
}

/** Why an output is not what its tool promises. */
export function faultOfOutput({ outputSchemaJson }: FunctionTool, outputJson: string): string | undefined {
  const validation = validator.parseResult(usable(outputSchemaJson), outputJson);
  return validation.kind === "invalid" ? validation.message : undefined;
}

/** A log may hold a schema that was never checked, or that cannot be compiled: then arguments are not checked, and the run goes on. */
function usable(schemaJson: string): string {
  return schemaJson === "" || validator.faultOfSchema(schemaJson) !== undefined ? "" : schemaJson;
}
