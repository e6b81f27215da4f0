import type { Bus } from "#runtime/bus/bus.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { CallRecord } from "../../calls/records/call-record.ts";
import { isOpen } from "../../calls/records/states.ts";
import type { CallQueue, QueuedCall } from "../../calls/watchers/watching.ts";
import { canBeDelivered, openDirectDelivery } from "./direct-delivery.ts";
import { openWorkQueue, type WorkQueueOptions } from "./offer-queue.ts";

export interface CallQueueOptions extends WorkQueueOptions {
  /** Straight from the router that recorded it; gives whether a watcher here has it. The revision is 0 if it is not known. */
  onDelivered(offer: QueuedCall, revision: number): boolean;
  revisionOf(callId: string): number;
  /** What stands of a call, as far as this router has heard. */
  readCached(callId: string): Promise<CallRecord | undefined>;
}

/** Both ways by which calls come to routers that hold a watcher: straight (direct-delivery.ts), and by the queue (offer-queue.ts). */
export function openCallQueue(bus: Bus, options: CallQueueOptions): CallQueue & AsyncDisposable {
  const { onDelivered: onHanded, revisionOf, readCached, onFault } = options;
  const queue = openWorkQueue(bus, options);
  const underWay = new Set<Promise<void>>();

  const handings = openDirectDelivery(bus, {
    onDelivered(record, revision) {
      if (queue.areWaiting(record.tool)) return false;
      const handOn = () => inBackground(record.callId, () => queue.enqueue(record, "again")); // what was handed straight stands in no queue
      return onHanded({ record, isOld: false, ack: () => {}, release: handOn }, revision);
    },
    onRefused: (callId) => inBackground(callId, () => enqueueRefused(callId)),
  });

  async function enqueueRefused(callId: string): Promise<void> {
    const record = await readCached(callId);
    if (record && isOpen(record) && !record.taken && canBeDelivered(record)) await queue.enqueue(record, "first");
  }

  /** Should it fail, the duty of the record sees to it. */
  function inBackground(callId: string, action: () => Promise<void>): void {
    const task: Promise<void> = action()
      .catch((error: unknown) => onFault(`call ${callId} waits for its duty: ${messageFromUnknown(error)}`))
      .finally(() => underWay.delete(task));
    underWay.add(task);
  }

  return {
    deliver: (record) => handings.deliver(record, revisionOf(record.callId)),
    enqueue: queue.enqueue,
    isQueued: queue.isQueued,
    remove: queue.remove,
    demand(tool, count) {
      handings.open(tool);
      queue.demand(tool, count);
    },
    stop(tool) {
      handings.close(tool);
      queue.stop(tool);
    },
    async [Symbol.asyncDispose]() {
      handings[Symbol.dispose]();
      queue[Symbol.dispose]();
      await Promise.all(underWay);
    },
  };
}
