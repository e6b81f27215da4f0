import type { ServiceImpl } from "@connectrpc/connect";
import type { InboxService } from "#gen/toolbus/spaces/v1/inbox_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Inbox } from "../inbox.ts";

export function inboxRoutes(inbox: Inbox, stopping: AbortSignal): ServiceImpl<typeof InboxService> {
  return {
    async deliverEvent({ event }) {
      return inbox.deliver(event ?? refuse("invalid_argument", "event: is required"));
    },
    async listInbox(request) {
      return { events: await inbox.list(request) };
    },
    async acknowledgeInbox(request) {
      await inbox.acknowledge(request, request.eventIds);
      return {};
    },
    async *watchInbox(request, context) {
      const ends = AbortSignal.any([context.signal, stopping]);
      for await (const event of inbox.follow(request, ends)) yield { event };
      if (stopping.aborted) refuse("unavailable", "this instance stops: watch again");
    },
  };
}
