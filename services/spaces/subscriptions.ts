import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type MemoryEntry, type Space, SpaceSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { ListEntriesResponseSchema } from "#gen/toolbus/spaces/v1/memory_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { createBucketTable } from "./subscriptions/bucket-table.ts";
import { createStreamInbox } from "./subscriptions/stream-inbox.ts";
import { createStreamLog } from "./subscriptions/stream-log.ts";

export { openDeliveries } from "./subscriptions/deliveries.ts";

/** Everything that the room remembers, as it stands on the bus. */
export function createStores(bus: Bus) {
  return {
    log: createStreamLog(bus),
    inbox: createStreamInbox(bus),
    spaces: createBucketTable<Space>(bus, "toolbus_spaces", {
      encode: (space) => toBinary(SpaceSchema, space),
      decode: (bytes) => fromBinary(SpaceSchema, bytes),
    }),
    activeSpaces: createBucketTable<string>(bus, "toolbus_active_spaces", {
      encode: (spaceId) => spaceId,
      decode: (bytes) => new TextDecoder().decode(bytes),
    }),
    memory: createBucketTable<MemoryEntry[]>(bus, "toolbus_memory", {
      encode: (entries) =>
        toBinary(ListEntriesResponseSchema, { $typeName: "toolbus.spaces.v1.ListEntriesResponse", entries }),
      decode: (bytes) => fromBinary(ListEntriesResponseSchema, bytes).entries,
    }),
  };
}
