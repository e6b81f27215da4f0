import type { Bus } from "#runtime/bus/bus.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { CallRecord } from "../../calls/records/record/call-record.ts";
import { isOpen } from "../../calls/records/record/states.ts";
import type { CallQueue, QueuedCall } from "../../calls/watchers/ports.ts";
import { canBeDelivered, openDirectDelivery } from "./direct-delivery.ts";
import { openWorkQueue, type WorkQueueOptions } from "./work-queue.ts";

export interface CallQueueOptions extends WorkQueueOptions {
  /** A call that was delivered directly. Returns whether a watcher here accepts it. A revision of 0 is unknown. */
  onDelivered(queued: QueuedCall, revision: number): boolean;
  revisionOf(callId: string): number;
  readCached(callId: string): Promise<CallRecord | undefined>;
}

/** Both ways to a router with a watcher: direct delivery, and the work queue. */
export function openCallQueue(bus: Bus, options: CallQueueOptions): CallQueue & AsyncDisposable {
  const { onDelivered, revisionOf, readCached, onFault } = options;
  const queue = openWorkQueue(bus, options);
  const underWay = new Set<Promise<void>>();

  const direct = openDirectDelivery(bus, {
    onDelivered(record, revision) {
      if (queue.areWaiting(record.tool)) return false;
      const release = () => inBackground(record.callId, () => queue.enqueue(record, "again")); // it is in no queue
      return onDelivered({ record, isOld: false, ack: () => {}, release }, revision);
    },
    onRefused: (callId) => inBackground(callId, () => enqueueRefused(callId)),
  });

  async function enqueueRefused(callId: string): Promise<void> {
    const record = await readCached(callId);
    if (record && isOpen(record) && !record.taken && canBeDelivered(record)) await queue.enqueue(record, "first");
  }

  /** If it fails, the due work does it. */
  function inBackground(callId: string, action: () => Promise<void>): void {
    const task: Promise<void> = action()
      .catch((error: unknown) => onFault(`call ${callId} waits for its due work: ${messageFromUnknown(error)}`))
      .finally(() => underWay.delete(task));
    underWay.add(task);
  }

  return {
    deliver: (record) => direct.deliver(record, revisionOf(record.callId)),
    enqueue: queue.enqueue,
    isQueued: queue.isQueued,
    remove: queue.remove,
    demand(tool, count) {
      direct.open(tool);
      queue.demand(tool, count);
    },
    stop(tool) {
      direct.close(tool);
      queue.stop(tool);
    },
    async [Symbol.asyncDispose]() {
      direct[Symbol.dispose]();
      queue[Symbol.dispose]();
      await Promise.all(underWay);
    },
  };
}
