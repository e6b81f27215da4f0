import type { Interceptor } from "@connectrpc/connect";
import type { NatsConnection } from "@nats-io/transport-node";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { RunContextService } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import { ToolMessageService } from "#gen/toolbus/internal/space/v1/tool_message_service_pb.ts";
import { InboxService } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { clientOnBehalf } from "#runtime/rpc/bus/client-on-behalf.ts";
import { clientFor } from "../../../clients.ts";
import type { Inbox } from "../../loop/inbox/inbox.ts";
import type { ToolMessages } from "../../loop/streaming/shown-calls.ts";

/** No run waits long for spaces: events stay in the inbox. */
const defaultTimeoutMs = 5_000;

export function createSpacesClient(
  bus: { connection: NatsConnection },
  interceptors: Interceptor[],
): Inbox & ToolMessages {
  const options = { interceptors, defaultTimeoutMs };
  return {
    ...clientOnBehalf(clientFor(bus, RunContextService, options)),
    ...clientOnBehalf(clientFor(bus, InboxDeliveryService, options)),
    ...clientOnBehalf(clientFor(bus, InboxService, options)),
    ...clientOnBehalf(clientFor(bus, SpaceService, options)),
    ...clientOnBehalf(clientFor(bus, ToolMessageService, options)),
  };
}
