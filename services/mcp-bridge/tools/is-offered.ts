import type { AllowedTools } from "#gen/toolbus/tool/v1/tool_pb.ts";

/** TOOL-14: whether the server's entry offers the tool; all are where it does not say which. */
export function isOffered(tool: string, allowedTools: AllowedTools | undefined): boolean {
  return allowedTools === undefined || allowedTools.names.includes(tool);
}
