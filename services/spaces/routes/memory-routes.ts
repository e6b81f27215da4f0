import type { ServiceImpl } from "@connectrpc/connect";
import type { RunContextService } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import type { MemoryService } from "#gen/toolbus/space/v1/memory_service_pb.ts";
import { callerOf } from "#runtime/rpc/identity.ts";
import { pageOf } from "#runtime/rpc/paging/page.ts";
import { type Memory, nameOf } from "../memory/memory.ts";
import type { Owner } from "../owners/owner.ts";
import type { Sessions } from "../owners/sessions.ts";
import type { RunContext } from "../run-context.ts";

export interface MemoryParts {
  memory: Memory;
  sessions: Sessions;
  runContext: (owner: Owner) => Promise<RunContext>;
}

export function memoryRoutes({ memory, sessions }: MemoryParts): ServiceImpl<typeof MemoryService> {
  return {
    async setEntries(request, context) {
      await memory.set(await sessions.ownerFor(request, callerOf(context)), request.entries);
      return {};
    },
    async deleteEntries(request, context) {
      const owner = await sessions.ownerFor(request, callerOf(context));
      return { deletedCount: await memory.delete(owner, request.kind, request.keys) };
    },
    async listEntries(request, context) {
      const owner = await sessions.ownerFor(request, callerOf(context));
      const listed = { elements: await memory.list(owner, request.kind), placeOf: nameOf };
      const list = ["entries", owner.sessionId, owner.agent, request.kind];
      const { items, nextPageToken } = pageOf(list, listed, request);
      return { entries: items, nextPageToken };
    },
  };
}

/** What a run of the agent starts with: read while the router is asked whose session that is, and told to the owner alone. */
export function runContextRoutes({ sessions, runContext }: MemoryParts): ServiceImpl<typeof RunContextService> {
  return {
    async getRunContext(request, context) {
      const reading = runContext(request);
      reading.catch(() => {}); // told to the owner alone, as what is read
      await sessions.ownerFor(request, callerOf(context));
      return reading;
    },
  };
}
