import { hash } from "node:crypto";
import { create, equals, toJson } from "@bufbuild/protobuf";
import stringify from "safe-stable-stringify";
import { type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { isTooDeep } from "#runtime/schema/json/json-size.ts";

/** What a model reads of a tool, and what policy relies on. */
export function definitionOf(tool: Tool): Tool {
  const { name, description, inputSchemaJson, outputSchemaJson, annotations, effect, executionType } = tool;
  const told = { name, description, inputSchemaJson, outputSchemaJson, effect, executionType };
  return create(ToolSchema, { ...told, ...(annotations && { annotations }) });
}

const digests = new WeakMap<Tool, string>();

/** SHA-256 of the definition as canonical JSON: the order of fields and white space make no difference. */
export function digestOf(tool: Tool): string {
  const known = digests.get(tool);
  if (known !== undefined) return known;
  const definition = Object(toJson(ToolSchema, definitionOf(tool)));
  const schemas = {
    inputSchemaJson: readJson(tool.inputSchemaJson),
    outputSchemaJson: readJson(tool.outputSchemaJson),
  };
  const digest = `sha256:${hash("sha256", stringify({ ...definition, ...schemas }) ?? "", "hex")}`;
  digests.set(tool, digest);
  return digest;
}

/** What is no JSON, or nested deeper than anybody may walk, stands as its text. */
function readJson(text: string): unknown {
  if (isTooDeep(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Whether two tools are the same for whoever uses them; looked at closer only when a text differs. */
export function areSameDefinition(one: Tool, other: Tool): boolean {
  return (
    one === other || equals(ToolSchema, definitionOf(one), definitionOf(other)) || digestOf(one) === digestOf(other)
  );
}
