import { ConnectError } from "@connectrpc/connect";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Connection } from "../../connection.ts";
import { printNote } from "../../printing/print.ts";

/** What was done in it, or failed, is the outcome of a command: that it stays open is a note beside it. */
export async function closeSession(connection: Connection, sessionId: string): Promise<void> {
  await noteUnclosed(sessionId, () => connection.client(SessionService).closeSession({ sessionId }));
}

/** A session that something still comes to stays, and says so: its next run would have it. */
export async function closeUnlessAwaited(connection: Connection, sessionId: string, state: RunState): Promise<void> {
  if (state === RunState.REQUIRES_ACTION) return;
  const pending = { sessionId, states: [ToolCallState.PENDING], pageSize: 1 };
  await noteUnclosed(sessionId, async () => {
    const { calls } = await connection.client(ToolCallService).listToolCalls(pending);
    if (calls.length > 0) return printNote(`the session stays open: a result of ${calls[0]?.tool} is yet to come`);
    await connection.client(SessionService).closeSession({ sessionId });
  });
}

async function noteUnclosed(sessionId: string, close: () => Promise<unknown>): Promise<void> {
  try {
    await close();
  } catch (error) {
    printNote(`the session ${sessionId} stays open: ${ConnectError.from(error).rawMessage}`);
  }
}
