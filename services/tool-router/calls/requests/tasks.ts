import type { ListToolCallsRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { type Caller, principalOf } from "#runtime/rpc/identity.ts";
import { placeOfNumber } from "#runtime/rpc/paging/page.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import type { CallStore } from "../records/store.ts";
import type { TaskEntry, TaskIndex } from "../records/task-index.ts";
import { readPage } from "./pages/read-page.ts";

export interface TasksParts {
  store: Pick<CallStore, "read">;
  tasks: Pick<TaskIndex, "read" | "remove">;
  clock: Pick<Clock, "now">;
}

export type Tasks = ReturnType<typeof createTasks>;

/** The record is written right after its entry: one that is missing later is gone. */
const WRITTEN_MS = 60_000;

/** The tasks of principals, by pages that cost what they hold. */
export function createTasks({ store, tasks, clock }: TasksParts) {
  async function read(principal: string, entry: TaskEntry): Promise<CallRecord | undefined> {
    const record = await store.read(entry.callId);
    if (record === undefined && entry.createdAtMs < clock.now() - WRITTEN_MS) await tasks.remove(principal, entry);
    return record?.task && record.tool !== "" && record.principal === principal ? record : undefined;
  }

  return {
    list(request: ListToolCallsRequest, caller: Caller, signal: AbortSignal) {
      const principal = principalOf(caller);
      return readPage(["tasks", principal], request, {
        entries: (after, limit) => tasks.read(principal, { after: Number(after || 0), limit, signal }),
        placeOf: ({ place }) => placeOfNumber(BigInt(place)),
        read: (entry) => read(principal, entry),
      });
    },
  };
}
