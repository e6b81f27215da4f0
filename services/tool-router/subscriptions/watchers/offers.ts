import type { Bus } from "#runtime/bus/bus.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { CallRecord } from "../../calls/records/call-record.ts";
import { isOpen } from "../../calls/records/states.ts";
import type { Offer, Offers } from "../../calls/watchers/watching.ts";
import { canBeHanded, openHandings } from "./direct-delivery.ts";
import { type OfferQueueOptions, openOfferQueue } from "./offer-queue.ts";

export interface OffersOptions extends OfferQueueOptions {
  /** Straight from the router that recorded it; gives whether a watcher here has it. The revision is 0 if it is not known. */
  onHanded(offer: Offer, revision: number): boolean;
  revisionOf(callId: string): number;
  /** What stands of a call, as far as this router has heard. */
  glance(callId: string): Promise<CallRecord | undefined>;
}

/** Both ways by which calls come to routers that hold a watcher: straight (direct-delivery.ts), and by the queue (offer-queue.ts). */
export function openOffers(bus: Bus, options: OffersOptions): Offers & AsyncDisposable {
  const { onHanded, revisionOf, glance, onFault } = options;
  const queue = openOfferQueue(bus, options);
  const underWay = new Set<Promise<void>>();

  const handings = openHandings(bus, {
    onHanded(record, revision) {
      if (queue.areWaiting(record.tool)) return false;
      const handOn = () => soon(record.callId, () => queue.offer(record, "again")); // what was handed straight stands in no queue
      return onHanded({ record, isOld: false, settle: () => {}, handOn }, revision);
    },
    onRefused: (callId) => soon(callId, () => offerRefused(callId)),
  });

  async function offerRefused(callId: string): Promise<void> {
    const record = await glance(callId);
    if (record && isOpen(record) && !record.taken && canBeHanded(record)) await queue.offer(record, "first");
  }

  /** Should it fail, the duty of the record sees to it. */
  function soon(callId: string, action: () => Promise<void>): void {
    const task: Promise<void> = action()
      .catch((error: unknown) => onFault(`call ${callId} waits for its duty: ${messageFromUnknown(error)}`))
      .finally(() => underWay.delete(task));
    underWay.add(task);
  }

  return {
    hand: (record) => handings.hand(record, revisionOf(record.callId)),
    offer: queue.offer,
    stands: queue.stands,
    withdraw: queue.withdraw,
    demand(tool, count) {
      handings.open(tool);
      queue.demand(tool, count);
    },
    leave(tool) {
      handings.close(tool);
      queue.leave(tool);
    },
    async [Symbol.asyncDispose]() {
      handings[Symbol.dispose]();
      queue[Symbol.dispose]();
      await Promise.all(underWay);
    },
  };
}
