import type { Bus } from "#runtime/bus/bus.ts";
import type { Attachments } from "./attachments.ts";
import type { Changes } from "./changes.ts";
import { createBucketDeclarations } from "./subscriptions/bucket-declarations.ts";
import { createBucketLateRequests } from "./subscriptions/bucket-late-requests.ts";
import { createBucketStreamRecords, followStreamRecords } from "./subscriptions/bucket-stream-records.ts";
import { createBusHolders } from "./subscriptions/bus-holders.ts";

export { createNeighbours } from "./subscriptions/neighbours.ts";
export { createPeers, reasonOfCancellation } from "./subscriptions/peers.ts";

/** What the room remembers, and who holds which call, as it stands on the bus. */
export function createStores(bus: Bus, instance: string) {
  return {
    declarations: createBucketDeclarations(bus),
    late: createBucketLateRequests(bus),
    records: createBucketStreamRecords(bus),
    holders: createBusHolders(bus, instance),
  };
}

/** Hears of every stream that opens or ends anywhere: closes those here that were replaced, and wakes who waits for one. */
export function openRecordWatch(
  bus: Bus,
  { attachments, changes, onError }: { attachments: Attachments; changes: Changes; onError: (error: unknown) => void },
): AsyncDisposable {
  const stopping = new AbortController();
  const run = async () => {
    for await (const { record, revision } of followStreamRecords(bus, stopping.signal)) {
      if (record.kind === "attached") attachments.keepOnly(record.sessionId, record.attachmentId, revision);
      changes.tell(record.sessionId);
    }
  };
  const running = run().catch((error: unknown) => {
    if (!stopping.signal.aborted) onError(error);
  });
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
    },
  };
}
