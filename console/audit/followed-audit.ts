import { create } from "@bufbuild/protobuf";
import type { AuditEvent, AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import {
  AuditService,
  type WatchAuditEventsResponse,
  WatchAuditEventsResponseSchema,
} from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { placeAfterUpdate } from "#runtime/rpc/watching/log-update.ts";
import { clientOf } from "../suite/connection.ts";
import type { Followed } from "../suite/live.ts";

/** Events that a page holds; older ones make room. */
const heldEvents = 50_000;

/** Pages of older events that are asked for: each may hold few, where few are wanted. */
const listedPages = 50;

export interface FollowedAudit extends Followed<WatchAuditEventsResponse> {
  readonly events: readonly AuditEvent[];
  readonly hasBegun: boolean;
  /** Older events are stored, and not shown. */
  readonly isCut: boolean;
}

/** The audit trail as it goes on, and what came before it, latest first; of some kinds, or all. */
export function followAudit(kinds: readonly AuditKind[]): FollowedAudit {
  const events: AuditEvent[] = [];
  const filter = { kinds: [...kinds] };
  let fromSequence: bigint | undefined;
  let followedFrom = 0n;
  let pageToken: string | undefined;
  let pageCount = 0;

  const isListed = () => pageToken === "" || pageCount === listedPages || events.length >= heldEvents;

  async function listOlder(signal: AbortSignal): Promise<void> {
    const page = await clientOf(AuditService).listAuditEvents(
      { filter, pageSize: 1_000, pageToken: pageToken ?? "" },
      { signal },
    );
    pageToken = page.nextPageToken;
    pageCount += 1;
    events.unshift(...page.events.filter(({ sequence }) => sequence < followedFrom).reverse());
  }

  async function* listAll(signal: AbortSignal) {
    while (!isListed()) {
      await listOlder(signal);
      yield create(WatchAuditEventsResponseSchema); // has the page drawn
    }
  }

  return {
    events,
    get hasBegun() {
      return pageCount > 0;
    },
    get isCut() {
      return isListed() && pageToken !== "";
    },
    async *open(signal) {
      if (fromSequence !== undefined) yield* listAll(signal); // a watch that goes on may tell nothing for long
      const place = fromSequence === undefined ? {} : { fromSequence };
      for await (const message of clientOf(AuditService).watchAuditEvents({ filter, ...place }, { signal })) {
        yield message;
        yield* listAll(signal);
      }
    },
    take({ update }) {
      if (fromSequence === undefined && update.case === "start") followedFrom = update.value.nextSequence;
      fromSequence = placeAfterUpdate(update, fromSequence);
      if (update.case !== "event") return;
      events.push(update.value);
      if (events.length > heldEvents) events.splice(0, heldEvents / 10);
    },
  };
}
