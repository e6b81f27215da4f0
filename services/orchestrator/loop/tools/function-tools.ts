/**
 * Tools that the client of a run executes (LOOP-5). Their schemas are checked when the run is created (with the path of
 * each fault; 262,144 characters each, no references to elsewhere). Arguments that do not fit are an error for the model. Outputs that
 * do not fit are refused by their calls (`RESULT_INVALID`), and none of their request is stored (LOOP-7, LOOP-8).
 *
 * A schema is compiled when a call first needs it, whichever run brings it, and kept under its text within a bound: to judge it costs
 * less, and no run holds anything.
 */

import type { FunctionTool } from "#gen/toolbus/run/v1/run_pb.ts";
import type { FieldViolation } from "#runtime/failure/failure.ts";
import { openSlices } from "#runtime/rpc/handling/messages/slices.ts";
import { argumentsRefused, type FaultOfSchema, faultOfToolSchema } from "#runtime/schema/json-schema/tool-schema.ts";
import { createValidator } from "#runtime/schema/json-schema/validator.ts";
import { faultOfUse } from "#runtime/schema/unusable.ts";

/** Some 10 MB at most. */
const validator = createValidator({ maxSchemas: 300, maxCharacters: 512 * 1_024 });

/** What is wrong with the schemas. */
export async function faultsOfFunctionTools(tools: readonly FunctionTool[], by: string): Promise<FieldViolation[]> {
  const faults: FieldViolation[] = [];
  const nextStep = openSlices();
  for (const [index, { inputSchemaJson, outputSchemaJson }] of tools.entries()) {
    for (const [field, text, place] of [
      ["input_schema_json", inputSchemaJson, "arguments"],
      ["output_schema_json", outputSchemaJson, "results"],
    ] as const) {
      if (text === "") continue;
      await nextStep();
      const faultOf: FaultOfSchema = async (schema, json) =>
        (await validator.faultOfShape(json, by)) ?? faultOfUse(schema);
      const fault = await faultOfToolSchema(text, place, faultOf);
      const path = `options.function_tools[${index}].${field}`;
      if (fault !== undefined) faults.push({ field: path, message: `${path}: ${fault}` });
    }
  }
  return faults;
}

/** The error for the model if its arguments do not fit. */
export async function faultOfArguments(
  { name, inputSchemaJson }: FunctionTool,
  argumentsJson: string,
  by: string,
): Promise<string | undefined> {
  const schemaJson = await usable(inputSchemaJson, by);
  const fault = await validator.faultOfArguments(schemaJson, argumentsJson.trim(), by);
  return fault === undefined ? undefined : argumentsRefused(name, fault);
}

/** Why an output is not what its tool promises. */
export async function faultOfOutput(
  { outputSchemaJson }: FunctionTool,
  outputJson: string,
  by: string,
): Promise<string | undefined> {
  return validator.faultOfResult(await usable(outputSchemaJson, by), outputJson, by);
}

/** A log may hold a schema that was never checked, or that cannot be compiled: then arguments are not checked, and the run goes on. */
async function usable(schemaJson: string, by: string): Promise<string> {
  return schemaJson === "" || (await validator.faultOfSchema(schemaJson, by)) !== undefined ? "" : schemaJson;
}
