import { type ToolCall, ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { isForPeople } from "#runtime/content/questions.ts";
import type { Connection } from "../connection.ts";

/** What waits for an answer of people, of a session or, with an empty id, of all. */
export async function callsForPeople(connection: Connection, sessionId: string): Promise<ToolCall[]> {
  const states = [ToolCallState.WAITING, ToolCallState.PENDING];
  const calls: ToolCall[] = [];
  let pageToken = "";
  do {
    const request = { sessionId, states, pageSize: 1_000, pageToken };
    const page = await connection.client(ToolCallService).listToolCalls(request);
    calls.push(...page.calls.filter(isForPeople));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return calls;
}
