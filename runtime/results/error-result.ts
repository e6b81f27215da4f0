import { create } from "@bufbuild/protobuf";
import { Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { ReasonName } from "../failure/failure.ts";
import { isObject } from "../schema/json-object.ts";

/** KIND-4: an error of a tool is data, in one form, which the model reads. */
export function errorResult(text: string, reason?: ReasonName): ToolResult {
  const outputJson = JSON.stringify({ error: text });
  return create(ToolResultSchema, { outputJson, isError: true, ...(reason && { reason: Reason[reason] }) });
}

/** What an error of a tool says, from the text of its result; one of another form is told as it is. */
export function errorTextOf(outputJson: string): string {
  const output: unknown = JSON.parse(outputJson || "null");
  return isObject(output) && typeof output.error === "string" ? output.error : outputJson;
}
