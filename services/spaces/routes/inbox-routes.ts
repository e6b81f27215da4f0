import type { ServiceImpl } from "@connectrpc/connect";
import type { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import type { InboxService } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { refuseField } from "#runtime/failure/failure.ts";
import { callerOf } from "#runtime/rpc/identity.ts";
import { openPage, pageOf, placeOfNumber } from "#runtime/rpc/paging/page.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Inbox } from "../inbox/inbox.ts";
import type { Sessions } from "../owners/sessions.ts";

export interface InboxParts {
  inbox: Inbox;
  sessions: Sessions;
  forgetSession: (session: { sessionId: string; isClosed: boolean }) => Promise<boolean>;
  /** Ends watches when the service stops, with what their clients are told. */
  stopping: AbortSignal;
}

export function inboxRoutes({ inbox, sessions, stopping }: InboxParts): ServiceImpl<typeof InboxService> {
  return {
    async listInboxEvents(request, context) {
      const owner = await sessions.ownerFor(request, callerOf(context));
      const listed = {
        elements: await inbox.list(owner),
        placeOf: ({ sequence }: InboxEvent) => placeOfNumber(sequence),
        takes: openPage(InboxEventSchema),
      };
      const { items, nextPageToken } = pageOf(["inbox", owner.sessionId, owner.agent], listed, request);
      return { events: items, nextPageToken };
    },
    async *watchInboxEvents(request, context) {
      const owner = await sessions.ownerFor(request, callerOf(context));
      using ending = openEnding(context.signal, stopping);
      for await (const update of inbox.follow(owner, request.fromSequence, ending.signal)) yield { update };
      stopping.throwIfAborted();
    },
  };
}

/** What other services tell the inbox. */
export function inboxDeliveryRoutes(parts: InboxParts): ServiceImpl<typeof InboxDeliveryService> {
  const { inbox, sessions, forgetSession } = parts;
  return {
    async deliverEvent({ event }, context) {
      const given = event ?? refuseField("event", "is required");
      if (given.sessionId !== "" && given.agent !== "") await sessions.ownerFor(given, callerOf(context));
      return inbox.deliver(given);
    },
    async forgetSession({ sessionId, closed: isClosed }) {
      return { forgotten: await forgetSession({ sessionId, isClosed }) };
    },
    async acknowledgeInbox(request, context) {
      await inbox.acknowledge(await sessions.ownerFor(request, callerOf(context)), request.eventIds);
      return {};
    },
  };
}
