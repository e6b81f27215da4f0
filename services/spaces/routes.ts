import type { ConnectRouter } from "@connectrpc/connect";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { RunContextService } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import { ToolMessageService } from "#gen/toolbus/internal/space/v1/tool_message_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { InboxService } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { MemoryService } from "#gen/toolbus/space/v1/memory_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import type { ResultStore } from "#runtime/results/store/store.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { type InboxParts, inboxDeliveryRoutes, inboxRoutes } from "./routes/inbox-routes.ts";
import { type MemoryParts, memoryRoutes, runContextRoutes } from "./routes/memory-routes.ts";
import { providerRoutes } from "./routes/provider-routes.ts";
import { type SpaceParts, spaceRoutes, toolMessageRoutes } from "./routes/space-routes.ts";

export interface Parts extends SpaceParts, InboxParts, MemoryParts {
  clock: Clock;
  results: Pick<ResultStore, "find" | "read">;
}

export function createRoutes(parts: Parts): (router: ConnectRouter) => void {
  return (router) => {
    router.service(SpaceService, spaceRoutes(parts));
    router.service(InboxService, inboxRoutes(parts));
    router.service(MemoryService, memoryRoutes(parts));
    router.service(InboxDeliveryService, inboxDeliveryRoutes(parts));
    router.service(RunContextService, runContextRoutes(parts));
    router.service(ToolMessageService, toolMessageRoutes(parts));
    router.service(ToolProviderService, providerRoutes(parts, parts.stopping));
  };
}
