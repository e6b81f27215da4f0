import type { ListToolCallsRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { type Caller, principalOf } from "#runtime/rpc/identity.ts";
import { placeOfNumber, sizeOfPage } from "#runtime/rpc/paging/page.ts";
import { placeFromToken } from "#runtime/rpc/paging/page-token.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import type { CallStore } from "../records/store.ts";
import type { TaskEntry, TaskIndex } from "../records/task-index.ts";
import { isAskedFor, readPage } from "./read-page.ts";

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
    async list(request: ListToolCallsRequest, caller: Caller, signal: AbortSignal) {
      const { sessionId, states, pageToken } = request;
      const principal = principalOf(caller);
      const list = ["tasks", principal, sessionId, states.toSorted()];
      const limit = sizeOfPage(request.pageSize);
      const after = Number(placeFromToken(list, pageToken) || 0);
      const entries = await tasks.read(principal, { after, limit: limit + 1, signal });
      return readPage(list, {
        ...{ entries, limit },
        placeOf: ({ place }) => placeOfNumber(BigInt(place)),
        async read(entry) {
          const call = await read(principal, entry);
          return call && isAskedFor(call, request) ? call : undefined;
        },
      });
    },
  };
}
