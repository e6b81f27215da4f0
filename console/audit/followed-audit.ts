import type { AuditEvent, AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { AuditService, type WatchAuditEventsResponse } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { placeAfterUpdate } from "#runtime/rpc/watching/log-update.ts";
import { clientOf } from "../suite/connection.ts";
import type { Followed } from "../suite/live.ts";

/** Events that a page holds; older ones make room. */
const heldEvents = 50_000;

export interface FollowedAudit extends Followed<WatchAuditEventsResponse> {
  readonly events: readonly AuditEvent[];
  readonly hasBegun: boolean;
}

/** The audit trail from the first event that is stored on; of some kinds, or all. */
export function followAudit(kinds: readonly AuditKind[]): FollowedAudit {
  const events: AuditEvent[] = [];
  let fromSequence = 0n;
  let hasBegun = false;
  return {
    events,
    get hasBegun() {
      return hasBegun;
    },
    open: (signal) =>
      clientOf(AuditService).watchAuditEvents({ filter: { kinds: [...kinds] }, fromSequence }, { signal }),
    take({ update }) {
      hasBegun = true;
      fromSequence = placeAfterUpdate(update, fromSequence);
      if (update.case !== "event") return;
      events.push(update.value);
      if (events.length > heldEvents) events.splice(0, heldEvents / 10);
    },
  };
}
