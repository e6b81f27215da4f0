import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { CallRecord } from "../records/record/call-record.ts";

/** How long a call stays after its last change, whatever the room: so long its id may be repeated without another execution. */
export const KEPT_MS = 3_600_000;

const ENDED: ReadonlySet<State> = new Set([State.RESOLVED, State.EXPIRED, State.CANCELED]);

/** Whether a call may leave when room gets short: it has ended, and no inbox waits for it. */
export function mayLeave({ state, undelivered }: CallRecord): boolean {
  return ENDED.has(state) && !undelivered;
}
