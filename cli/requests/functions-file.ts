import { readFile } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { type FunctionTool, FunctionToolSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { UsageFault } from "../faults/fault.ts";

const fields = new Set(["name", "description", "inputSchema", "outputSchema"]);

/** The functions that whoever starts a run executes (LOOP-5): a list, each as a tool's file has it. Their schemas are judged by the suite. */
export async function readFunctionsFile(path: string): Promise<FunctionTool[]> {
  let functions: unknown;
  try {
    functions = JSON.parse((await readFile(path, "utf8")).replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new UsageFault(`--functions ${path}: ${messageFromUnknown(error)}`);
  }
  if (!Array.isArray(functions)) throw new UsageFault(`--functions ${path}: expected a list of functions`);
  return functions.map((one: unknown, index) => functionFrom(one, `--functions ${path}: [${index}]`));
}

function functionFrom(value: unknown, place: string): FunctionTool {
  const written = typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
  const { name, description = "", inputSchema = { type: "object" }, outputSchema } = written as Record<string, unknown>;
  const unknown = Object.keys(written).find((field) => !fields.has(field));
  if (unknown !== undefined) throw new UsageFault(`${place}.${unknown}: is none of ${[...fields].join(", ")}`);
  if (typeof name !== "string" || name === "") throw new UsageFault(`${place}.name: is missing`);
  if (typeof description !== "string") throw new UsageFault(`${place}.description: must be text`);
  return create(FunctionToolSchema, {
    name,
    description,
    inputSchemaJson: JSON.stringify(inputSchema),
    outputSchemaJson: outputSchema === undefined ? "" : JSON.stringify(outputSchema),
  });
}
