import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Connection } from "../connection.ts";
import { printNote } from "../printing/print.ts";

/** A session that something still comes to stays, and says so: its next run would have it. */
export async function closeUnlessAwaited(connection: Connection, sessionId: string, state: RunState): Promise<void> {
  if (state === RunState.REQUIRES_ACTION) return;
  const pending = { sessionId, states: [ToolCallState.PENDING], pageSize: 1 };
  const { calls } = await connection.client(ToolCallService).listToolCalls(pending);
  if (calls.length > 0) return printNote(`the session stays open: a result of ${calls[0]?.tool} is yet to come`);
  await connection.client(SessionService).closeSession({ sessionId });
}
