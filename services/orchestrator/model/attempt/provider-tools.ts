import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { refuseLocally } from "#runtime/failure/local-failure.ts";

/**
 * Calls are for the loop to execute. A provider that executes tools itself, and gives their results in its stream, is refused: the
 * log has no place for what it did, and the same request would be answered so again.
 */
export function refuseProviderTools(part: LanguageModelV4StreamPart): void {
  const name = toolOfProvider(part);
  if (name === undefined) return;
  const why = "such tools are not supported, and the options of the model have to turn them off";
  refuseLocally("unimplemented", `the model called "${name}", a tool that its provider executes: ${why}`, {
    kind: "provider_tool_unsupported",
  });
}

function toolOfProvider(part: LanguageModelV4StreamPart): string | undefined {
  switch (part.type) {
    case "tool-input-start":
    case "tool-call":
      return part.providerExecuted === true ? part.toolName : undefined;
    case "tool-result":
      return part.toolName;
    default:
      return undefined;
  }
}
