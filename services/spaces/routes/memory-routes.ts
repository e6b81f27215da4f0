import type { ServiceImpl } from "@connectrpc/connect";
import type { MemoryService } from "#gen/toolbus/spaces/v1/memory_pb.ts";
import { askerOf } from "#runtime/rpc/identity.ts";
import type { Memory } from "../memory.ts";
import type { Owner } from "../owner.ts";
import type { RunContext } from "../run-context.ts";
import type { Sessions } from "../sessions.ts";

export interface MemoryParts {
  memory: Memory;
  sessions: Sessions;
  runContext: (owner: Owner) => Promise<RunContext>;
}

export function memoryRoutes({ memory, sessions, runContext }: MemoryParts): ServiceImpl<typeof MemoryService> {
  return {
    async setEntries(request, context) {
      await memory.set(await sessions.ownerFor(request, askerOf(context)), request.entries);
      return {};
    },
    async deleteEntries(request, context) {
      const owner = await sessions.ownerFor(request, askerOf(context));
      return { deleted: await memory.delete(owner, request.kind, request.keys) };
    },
    async listEntries(request, context) {
      const owner = await sessions.ownerFor(request, askerOf(context));
      return { entries: await memory.list(owner, request.kind) };
    },
    async getRunContext(request, context) {
      return runContext(await sessions.ownerFor(request, askerOf(context)));
    },
  };
}
