import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { form as toolForm } from "#gen/forms/tool-form.ts";
import { type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { POLICY_BUILT_IN_NAMES } from "#runtime/agent-file/built-in-name.ts";
import { contractJson } from "#runtime/agent-file/spelling.ts";
import { NAME_WORDS, TOOL_NAME, toolSpelling } from "#runtime/agent-file/tool-spelling.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { createFileForm } from "./file-form.ts";

/** TOOL-1: a tool's file. */
export const parseToolFile = createFileForm(toolForm, readTool, { wordsByPattern: { [TOOL_NAME.source]: NAME_WORDS } });

function readTool(file: JsonObject, ofFaulty?: { ignoreUnknownFields: true }): Tool {
  if (ofFaulty === undefined) return toolFromFile(file);
  if ((file.executionType ?? file.kind) === undefined)
    throw new TypeError("it has no kind, by which the rest is judged");
  return toolFromFile(withoutOmitted(file), ofFaulty);
}

/** Fields of the contract that no file has are as unknown as any other: what they hold says nothing. */
function withoutOmitted(file: JsonObject): JsonObject {
  const omitted = toolSpelling[ToolSchema.typeName]?.omitted ?? [];
  return Object.fromEntries(Object.entries(file).filter(([name]) => !omitted.includes(name)));
}

function toolFromFile(file: JsonObject, options: { ignoreUnknownFields?: boolean } = {}): Tool {
  const { $schema: _, name = "", inputSchema = { type: "object" }, builtinPolicy: policy, ...rest } = file;
  const ownName = POLICY_BUILT_IN_NAMES.includes(String(name)) && { name };
  const builtinPolicy = isObject(policy) ? { ...ownName, ...policy } : policy;
  const spelled = { name, inputSchema, ...(builtinPolicy !== undefined && { builtinPolicy }), ...rest };
  return fromJson(ToolSchema, contractJson(ToolSchema, spelled as JsonObject, toolSpelling), options);
}
