import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { form as toolForm } from "#gen/forms/tool-form.ts";
import { type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { POLICY_BUILT_IN_NAMES } from "#runtime/agent-file/built-in-name.ts";
import { contractJson } from "#runtime/agent-file/spelling.ts";
import { NAME_WORDS, TOOL_NAME, toolSpelling } from "#runtime/agent-file/tool-spelling.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { createFileForm } from "./file-form.ts";

/** TOOL-1: a tool's file. */
export const parseToolFile = createFileForm(toolForm, toolFromFile, {
  wordsByPattern: { [TOOL_NAME.source]: NAME_WORDS },
});

function toolFromFile(file: JsonObject): Tool {
  const { $schema: _, name = "", inputSchema = { type: "object" }, builtinPolicy: policy, ...rest } = file;
  const { executionType = rest.kind, kind = executionType } = rest;
  if (kind !== executionType)
    throw new Error(`kind: is ${JSON.stringify(kind)}, and executionType is ${JSON.stringify(executionType)}`);
  const ownName = POLICY_BUILT_IN_NAMES.includes(String(name)) && { name };
  const builtinPolicy = isObject(policy) ? { ...ownName, ...policy } : policy;
  const spelled = { name, inputSchema, ...(builtinPolicy !== undefined && { builtinPolicy }), ...rest };
  return fromJson(ToolSchema, contractJson(ToolSchema, spelled as JsonObject, toolSpelling));
}
