/** Spaces for tests, as far as a run needs them: what is delivered waits until it is acknowledged. */

import { create } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import {
  GetRunContextResponseSchema,
  RunContextService,
} from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { InboxService, ListInboxEventsResponseSchema } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { MemberKind } from "#gen/toolbus/space/v1/space_pb.ts";
import type { Inbox } from "../../loop/inbox/inbox.ts";

export interface FakeSpaces {
  readonly waiting: InboxEvent[];
  readonly acknowledged: string[];
  routes(router: ConnectRouter): void;
}

export function createFakeSpaces(): FakeSpaces {
  const waiting: InboxEvent[] = [];
  const acknowledged: string[] = [];
  const of = ({ sessionId, agent }: { sessionId: string; agent: string }) =>
    waiting.filter((event) => event.sessionId === sessionId && event.agent === agent);
  const spaces: FakeSpaces = {
    waiting,
    acknowledged,
    routes(router) {
      router.service(RunContextService, {
        getRunContext: (request) => ({ events: of(request) }),
      });
      router.service(InboxService, {
        listInboxEvents: (request) => ({ events: of(request) }),
      });
      router.service(InboxDeliveryService, {
        acknowledgeInbox({ eventIds }) {
          acknowledged.push(...eventIds);
          for (const eventId of eventIds) {
            const index = waiting.findIndex((event) => event.eventId === eventId);
            if (index >= 0) waiting.splice(index, 1);
          }
          return {};
        },
      });
    },
  };
  return spaces;
}

/** An inbox in which one event waits for ever. */
export function createFakeInbox(event: InboxEvent): Pick<Inbox, "listInboxEvents" | "getRunContext"> {
  return {
    listInboxEvents: async () => create(ListInboxEventsResponseSchema, { events: [event] }),
    getRunContext: async () => create(GetRunContextResponseSchema, { events: [event] }),
  };
}

export interface TestEvent {
  readonly sessionId: string;
  readonly agent: string;
  readonly eventId: string;
  readonly text: string;
  /** Whether a person said it; otherwise it is the late result of a call. */
  readonly isFromPerson?: boolean;
}

export function inboxEvent({ sessionId, agent, eventId, text, isFromPerson = false }: TestEvent): InboxEvent {
  const event = isFromPerson
    ? { case: "message" as const, value: { author: "Ada", text, authorKind: MemberKind.PERSON } }
    : { case: "toolResult" as const, value: { callId: eventId, tool: "slow" } };
  return create(InboxEventSchema, { sessionId, agent, eventId, text, event });
}
