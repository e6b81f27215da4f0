import { MemoryRecordSchema } from "#gen/toolbus/internal/space/v1/memory_pb.ts";
import { codecOf, textCodec } from "#runtime/bus/buckets/bucket.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { SPACES } from "./subscriptions/quota/quotas.ts";
import { createStreamInbox } from "./subscriptions/stream-inbox.ts";
import { createStreamLog } from "./subscriptions/stream-log.ts";

/** Everything that the service remembers, as it stands on the bus. */
export function createStores(bus: Bus) {
  return {
    log: createStreamLog(bus),
    inbox: createStreamInbox(bus),
    spaces: createBucket(bus, SPACES),
    activeSpaces: createBucket(bus, { bucket: "toolbus_active_spaces", prefix: "", codec: textCodec }),
    memory: createBucket(bus, { bucket: "toolbus_memory", prefix: "", codec: codecOf(MemoryRecordSchema) }),
  };
}
