import { create } from "@bufbuild/protobuf";
import type { Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { type ProvidedResult, ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";

/** What a provider answers that used no model, called no tool, and leaves the run as it is. */
export function providedResult({ outputJson, isError = false, reason }: Outcome): ProvidedResult {
  return create(ProvidedResultSchema, { outputJson, isError, ...(reason && { reason }) });
}

interface Outcome {
  readonly outputJson: string;
  readonly isError?: boolean;
  readonly reason?: Reason;
}

/** The result alone, as its callers are given it. */
export function resultFromProvided({ outputJson, isError, reason }: ProvidedResult): ToolResult {
  return create(ToolResultSchema, { outputJson, isError, reason });
}
