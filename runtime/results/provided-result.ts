import { create } from "@bufbuild/protobuf";
import { type ProvidedResult, ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";

/** What a provider answers that used no model, called no tool, and leaves the run as it is. */
export function providedResult({ outputJson, isError = false }: Outcome): ProvidedResult {
  return create(ProvidedResultSchema, { outputJson, isError });
}

interface Outcome {
  readonly outputJson: string;
  readonly isError?: boolean;
}

/** The result alone, as its callers are given it. */
export function resultFromProvided({ outputJson, isError }: ProvidedResult): ToolResult {
  return create(ToolResultSchema, { outputJson, isError });
}
