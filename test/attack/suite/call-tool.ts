import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { gatewayAt } from "../../system/access/world.ts";

/** The result of a tool, as text; throws what failed. */
export async function callTool(
  by: Pick<ReturnType<typeof gatewayAt>, "client">,
  request: { sessionId: string; name: string; argumentsJson: string; callId?: string },
): Promise<string> {
  for await (const { event } of by.client(ToolService).callTool(request)) {
    if (event.case !== "result") continue;
    const text = JSON.stringify(event.value, (_, value) => (typeof value === "bigint" ? String(value) : value));
    if (event.value.isError) throw new Error(text);
    return text;
  }
  throw new Error(`${request.name} gave no result`);
}
