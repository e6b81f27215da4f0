import type { Interceptor } from "@connectrpc/connect";
import type { NatsConnection } from "@nats-io/transport-node";
import { InboxService } from "#gen/toolbus/spaces/v1/inbox_pb.ts";
import { MemoryService } from "#gen/toolbus/spaces/v1/memory_pb.ts";
import { SpaceService } from "#gen/toolbus/spaces/v1/spaces_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { clientFor } from "#runtime/rpc/client.ts";
import { withPrincipal } from "#runtime/rpc/identity.ts";
import type { Inbox } from "../inbox/inbox.ts";
import type { Showing } from "../showing/showing.ts";

/** Nothing waits long for spaces: what it would have told stays where it is. */
const timeoutMs = 5_000;

export function createInboxClient(bus: { connection: NatsConnection }, interceptors: Interceptor[]): Inbox {
  const memory = clientFor(bus, MemoryService, { interceptors });
  const inbox = clientFor(bus, InboxService, { interceptors });
  return {
    tell: ({ sessionId, agent, principal }, signal) =>
      ask(principal, () => memory.getRunContext({ sessionId, agent }, { signal, timeoutMs })),
    list: ({ sessionId, agent, principal }, signal) =>
      ask(principal, async () => (await inbox.listInbox({ sessionId, agent }, { signal, timeoutMs })).events),
    async acknowledge({ sessionId, agent, principal }, eventIds, signal) {
      const request = { sessionId, agent, eventIds: [...eventIds] };
      await ask(principal, () => inbox.acknowledgeInbox(request, { signal, timeoutMs }));
    },
  };
}

export function createShowingClient(bus: { connection: NatsConnection }, interceptors: Interceptor[]): Showing {
  const spaces = clientFor(bus, SpaceService, { interceptors });
  return {
    activeSpace: ({ sessionId, agent, principal }, signal) =>
      ask(principal, async () => (await spaces.getActiveSpace({ sessionId, agent }, { signal, timeoutMs })).spaceId),
    async record({ sessionId, agent, principal }, spaceId, message, signal) {
      const request = { spaceId, sessionId, agent, message };
      await ask(principal, () => spaces.recordToolMessage(request, { signal, timeoutMs }));
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
