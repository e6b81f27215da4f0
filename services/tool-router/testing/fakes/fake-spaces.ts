import type { ConnectRouter } from "@connectrpc/connect";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { ToolMessageService } from "#gen/toolbus/internal/space/v1/tool_message_service_pb.ts";
import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";
import type { ToolMessage } from "#gen/toolbus/space/v1/space_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { FakeProvider } from "./fake-provider.ts";

/** The spaces service as far as the router needs it: active spaces, messages of tools, the inbox, the built-ins. */
export class FakeSpaces extends FakeProvider {
  /** By session, for whatever agent, or by session and agent: `<session> <agent>`. */
  readonly activeSpaces = new Map<string, string>();
  readonly messages: ToolMessage[] = [];
  readonly inbox = new Map<string, InboxEvent>();
  /** Before a message of a tool is kept. */
  onToolMessage: (message: ToolMessage) => Promise<void> | void = () => {};

  statusesOf(callId: string): number[] {
    return this.messages.filter((message) => message.callId === callId).map(({ state: status }) => status);
  }

  readonly spaceRoutes = (router: ConnectRouter): void => {
    this.routes(router);
    router.service(SpaceService, {
      leaveSpace: ({ member }) => {
        const { sessionId = "", agent = "" } = member.case === "agent" ? member.value : {};
        return { left: this.activeSpaces.delete(`${sessionId} ${agent}`) };
      },
      getActiveSpace: ({ sessionId, agent }) => ({
        spaceId: this.activeSpaces.get(`${sessionId} ${agent}`) ?? this.activeSpaces.get(sessionId) ?? "",
      }),
    });
    router.service(ToolMessageService, {
      recordToolMessage: async ({ message }) => {
        await this.onToolMessage(message!);
        this.messages.push(message!);
        return {};
      },
    });
    router.service(InboxDeliveryService, {
      deliverEvent: ({ event }) => {
        const duplicate = this.inbox.has(event!.eventId);
        this.inbox.set(event!.eventId, event!);
        return { duplicate };
      },
    });
  };
}
