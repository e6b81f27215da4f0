import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type MemoryRecord, MemoryRecordSchema } from "#gen/toolbus/internal/space/v1/memory_pb.ts";
import { type Space, SpaceSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { readRecord } from "#runtime/bus/record.ts";
import { followSubject } from "#runtime/bus/streams/read.ts";
import { createBucketTable } from "./subscriptions/bucket-table.ts";
import { createStreamInbox } from "./subscriptions/stream-inbox.ts";
import { createStreamLog } from "./subscriptions/stream-log.ts";

export { openDeliveries } from "./subscriptions/deliveries.ts";
export { createNeighbours } from "./subscriptions/neighbours.ts";
export { createSessionWaker } from "./subscriptions/session-waker.ts";

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
    memory: createBucketTable<MemoryRecord>(bus, "toolbus_memory", {
      encode: (record) => toBinary(MemoryRecordSchema, record),
      decode: (bytes) => fromBinary(MemoryRecordSchema, bytes),
    }),
  };
}

/** What each agent remembers, as it stands and then after each change, until the signal aborts. */
export async function* followMemory(bus: Bus, signal: AbortSignal): AsyncGenerator<MemoryRecord> {
  for await (const message of followSubject(bus, "$KV.toolbus_memory.>", { signal })) {
    const record = readRecord(bus, message, () => fromBinary(MemoryRecordSchema, message.data));
    if (record !== undefined) yield record;
  }
}
