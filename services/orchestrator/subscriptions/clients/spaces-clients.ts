import type { Interceptor } from "@connectrpc/connect";
import type { NatsConnection } from "@nats-io/transport-node";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { RunContextService } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import { ToolMessageService } from "#gen/toolbus/internal/space/v1/tool_message_service_pb.ts";
import { InboxService } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { withPrincipal } from "#runtime/rpc/identity.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { clientFor } from "../../../clients.ts";
import type { Inbox } from "../../loop/inbox/inbox.ts";
import type { ToolMessages } from "../../loop/streaming/shown-calls.ts";

/** No run waits long for spaces: events stay in the inbox. */
const timeoutMs = 5_000;

export function createInboxClient(bus: { connection: NatsConnection }, interceptors: Interceptor[]): Inbox {
  const contexts = clientFor(bus, RunContextService, { interceptors });
  const delivery = clientFor(bus, InboxDeliveryService, { interceptors });
  const inbox = clientFor(bus, InboxService, { interceptors });
  return {
    read: ({ sessionId, agent, principal }, signal) =>
      ask(principal, async () => {
        const { parts, events } = await contexts.getRunContext({ sessionId, agent }, { signal, timeoutMs });
        return { events, instructions: parts };
      }),
    list: ({ sessionId, agent, principal }, signal) =>
      ask(principal, async () => {
        const page = (pageToken: string) =>
          inbox.listInboxEvents({ sessionId, agent, pageToken }, { signal, timeoutMs });
        return (await allPages(page)).flatMap(({ events }) => events);
      }),
    async acknowledge({ sessionId, agent, principal }, eventIds, signal) {
      const request = { sessionId, agent, eventIds: [...eventIds] };
      await ask(principal, () => delivery.acknowledgeInbox(request, { signal, timeoutMs }));
    },
  };
}

export function createToolMessagesClient(
  bus: { connection: NatsConnection },
  interceptors: Interceptor[],
): ToolMessages {
  const spaces = clientFor(bus, SpaceService, { interceptors });
  const toolMessages = clientFor(bus, ToolMessageService, { interceptors });
  return {
    activeSpace: ({ sessionId, agent, principal }, signal) =>
      ask(principal, async () => (await spaces.getActiveSpace({ sessionId, agent }, { signal, timeoutMs })).spaceId),
    async record({ sessionId, agent, principal }, spaceId, message, signal) {
      const request = { spaceId, sessionId, agent, message };
      await ask(principal, () => toolMessages.recordToolMessage(request, { signal, timeoutMs }));
    },
  };
}

async function ask<T>(principal: string, call: () => Promise<T>): Promise<T> {
  try {
    return await withPrincipal(principal, call);
  } catch (error) {
    throw failureFromConnectError(error);
  }
}
