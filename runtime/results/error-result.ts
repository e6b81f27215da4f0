import { create } from "@bufbuild/protobuf";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";

/** KIND-4: an error of a tool is data, in one form, which the model reads. */
export function errorResult(text: string): ToolResult {
  return create(ToolResultSchema, { outputJson: JSON.stringify({ error: text }), isError: true });
}
