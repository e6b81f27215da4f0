import type { Client } from "@connectrpc/connect";
import type { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { ClientCall } from "../history.ts";

export interface ToldRequest {
  /** The call's key as well. */
  readonly callId: string;
  readonly sessionId: string;
  readonly name: string;
  readonly argumentsJson: string;
}

/** What a client is told that asks once. */
export async function toldOf(
  tools: Client<typeof ToolService>,
  request: ToldRequest,
  timeoutMs: number,
): Promise<ClientCall["told"]> {
  try {
    for await (const { event } of tools.callTool(request, { timeoutMs })) {
      if (event.case !== "result") continue;
      const { isError, outputJson } = event.value;
      if (isError) return { kind: "fault", text: outputJson };
      return { kind: "result", key: keysIn(outputJson).includes(request.callId) ? request.callId : outputJson };
    }
    return { kind: "fault", text: "the stream ended without a result" };
  } catch (error) {
    return { kind: "fault", text: messageFromUnknown(error) };
  }
}

function keysIn(outputJson: string): string[] {
  return outputJson.match(/\b(?:c|large)\d+x\d+/g) ?? [];
}
