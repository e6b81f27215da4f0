import { create } from "@bufbuild/protobuf";
import { Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { ReasonName } from "../failure/failure.ts";

/** KIND-4: an error of a tool is data, in one form, which the model reads. */
export function errorResult(text: string, reason?: ReasonName): ToolResult {
  const outputJson = JSON.stringify({ error: text });
  return create(ToolResultSchema, { outputJson, isError: true, ...(reason && { reason: Reason[reason] }) });
}
