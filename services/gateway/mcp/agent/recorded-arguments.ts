import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { StoredResults } from "./stored-results.ts";

/** A call's arguments as they were given; undefined where no more than their digest is kept. */
export async function recordedArguments(
  { argumentsJson, argumentsReference }: Pick<ToolCall, "argumentsJson" | "argumentsReference">,
  results: Pick<StoredResults, "readBytes">,
): Promise<string | undefined> {
  if (argumentsReference === "") return isDigest(argumentsJson) ? undefined : argumentsJson;
  return Buffer.from(await results.readBytes({ case: "storedReference", value: argumentsReference })).toString();
}

/** What is recorded of arguments that are too large for a record. */
function isDigest(argumentsJson: string): boolean {
  return argumentsJson.startsWith('{"truncated":true,"bytes":');
}
