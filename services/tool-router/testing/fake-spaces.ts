import type { ConnectRouter } from "@connectrpc/connect";
import type { InboxEvent, ToolMessage } from "#gen/toolbus/space/v1/space_pb.ts";
import { InboxService } from "#gen/toolbus/spaces/v1/inbox_pb.ts";
import { SpaceService } from "#gen/toolbus/spaces/v1/spaces_pb.ts";
import { FakeProvider } from "./fake-provider.ts";

/** The spaces service as far as the router needs it: active spaces, messages of tools, the inbox, the built-ins. */
export class FakeSpaces extends FakeProvider {
  /** By session, for whatever agent, or by session and agent: `<session> <agent>`. */
  readonly activeSpaces = new Map<string, string>();
  readonly messages: ToolMessage[] = [];
  readonly inbox = new Map<string, InboxEvent>();

  statusesOf(callId: string): number[] {
    return this.messages.filter((message) => message.callId === callId).map(({ status }) => status);
  }

  readonly spaceRoutes = (router: ConnectRouter): void => {
    this.routes(router);
    router.service(SpaceService, {
      getActiveSpace: ({ sessionId, agent }) => ({
        spaceId: this.activeSpaces.get(`${sessionId} ${agent}`) ?? this.activeSpaces.get(sessionId) ?? "",
      }),
      recordToolMessage: ({ message }) => {
        this.messages.push(message!);
        return {};
      },
    });
    router.service(InboxService, {
      deliverEvent: ({ event }) => {
        const duplicate = this.inbox.has(event!.eventId);
        this.inbox.set(event!.eventId, event!);
        return { duplicate };
      },
    });
  };
}
