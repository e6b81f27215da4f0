import { type ToolCall, ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { clientOf } from "../suite/connection.ts";

/** How often it is asked what waits, in ms: the contract has no watch of it. */
export const inboxMs = 2_000;

/** Calls that somebody outside of the suite is to answer; all of them, or of one session. */
export async function listWaitingCalls(signal: AbortSignal, sessionId = ""): Promise<ToolCall[]> {
  const states = [ToolCallState.WAITING, ToolCallState.PENDING];
  const calls: ToolCall[] = [];
  let pageToken = "";
  do {
    const page = await clientOf(ToolCallService).listToolCalls(
      { sessionId, states, pageSize: 1_000, pageToken },
      { signal },
    );
    calls.push(...page.calls);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return calls;
}
