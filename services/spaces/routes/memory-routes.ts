import type { ServiceImpl } from "@connectrpc/connect";
import type { MemoryService } from "#gen/toolbus/spaces/v1/memory_pb.ts";
import type { Memory } from "../memory.ts";

export function memoryRoutes(memory: Memory): ServiceImpl<typeof MemoryService> {
  return {
    async setEntries(request) {
      await memory.set(request, request.entries);
      return {};
    },
    async deleteEntries(request) {
      return { deleted: await memory.delete(request, request.kind, request.keys) };
    },
    async listEntries(request) {
      return { entries: await memory.list(request, request.kind) };
    },
  };
}
