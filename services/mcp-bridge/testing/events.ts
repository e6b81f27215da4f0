import type { ProvidedResult } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import type { ExecuteToolResponse } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { ToolLog, ToolProgress } from "#gen/toolbus/tool/v1/tool_pb.ts";

/** What a call told, sorted; throws when its results are not exactly one, and last. */
export interface EventTold {
  progress: ToolProgress[];
  logs: ToolLog[];
  result: ProvidedResult;
  /** The result's JSON, parsed. */
  output: unknown;
}

export async function eventsOf(responses: AsyncIterable<ExecuteToolResponse>): Promise<EventTold> {
  const progress: ToolProgress[] = [];
  const logs: ToolLog[] = [];
  let result: ProvidedResult | undefined;
  for await (const { event } of responses) {
    if (result) throw new Error("something follows the result");
    if (event.case === "progress") progress.push(event.value);
    if (event.case === "log") logs.push(event.value);
    if (event.case === "result") result = event.value;
  }
  if (!result) throw new Error("the call ended without a result");
  return { progress, logs, result, output: JSON.parse(result.outputJson) };
}
