import { type ToolCall, ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { isForPeople } from "#runtime/content/questions.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import type { Connection } from "../connection.ts";

/** What waits for an answer of people, of a session or, with an empty id, of all. */
export async function callsForPeople(connection: Connection, sessionId: string): Promise<ToolCall[]> {
  const request = { sessionId, states: [ToolCallState.WAITING, ToolCallState.PENDING], pageSize: 1_000 };
  const calls = connection.client(ToolCallService);
  const pages = await allPages((pageToken) => calls.listToolCalls({ ...request, pageToken }));
  return pages.flatMap((page) => page.calls).filter(isForPeople);
}
