import type { AcknowledgeToolCallRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { CallRecord } from "../records/record/call-record.ts";
import { hasExpired, isOpen } from "../records/record/states.ts";
import type { CallStore } from "../records/store.ts";
import type { DeliveryIds } from "../watchers/delivery-id.ts";
import { refuseCall, refuseUnknown, refuseUnlessOpen } from "./open.ts";

export type Acknowledgements = ReturnType<typeof createAcknowledgements>;

export interface AcknowledgementParts {
  store: CallStore;
  deliveryIds: Pick<DeliveryIds, "isFor">;
  clock: Clock;
}

export function createAcknowledgements({ store, deliveryIds, clock }: AcknowledgementParts) {
  return {
    /** TOOL-6: the call belongs to this watcher from now on. If two hold it, the second is refused. May be repeated. */
    async acknowledge({ callId, deliveryId }: AcknowledgeToolCallRequest, principal: string): Promise<CallRecord> {
      const isGenuine = deliveryIds.isFor(deliveryId, callId, principal);
      const updated = await store.update(callId, (record) =>
        isOpen(record) && !record.taken && isGenuine && !hasExpired(record, clock.now())
          ? { ...record, taken: true, deliveryId, watcherPrincipal: principal }
          : undefined,
      );
      const { record, hasChanged } = updated ?? refuseUnknown(callId);
      const isOwn = isGenuine && record.deliveryId === deliveryId;
      if (hasChanged || (!isOwn && (record.taken || !isOpen(record)))) store.announce(callId); // dispatcher-6: its watcher may not know
      if (isOwn) return record;
      refuseUnlessOpen(record, clock.now());
      const why = record.taken ? "has been handed to another watcher" : "was not handed over by this delivery";
      if (record.taken) return refuseCall("failed_precondition", callId, { reason: "CALL_TAKEN", why });
      return refuseCall("failed_precondition", callId, { reason: "DELIVERY_NOT_FOUND", why });
    },
  };
}
