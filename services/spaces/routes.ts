import type { ConnectRouter } from "@connectrpc/connect";
import { InboxService } from "#gen/toolbus/spaces/v1/inbox_pb.ts";
import { MemoryService } from "#gen/toolbus/spaces/v1/memory_pb.ts";
import { SpaceService } from "#gen/toolbus/spaces/v1/spaces_pb.ts";
import { ToolProviderService } from "#gen/toolbus/tool/v1/provider_pb.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { type InboxParts, inboxRoutes } from "./routes/inbox-routes.ts";
import { type MemoryParts, memoryRoutes } from "./routes/memory-routes.ts";
import { providerRoutes } from "./routes/provider-routes.ts";
import { type SpaceParts, spaceRoutes } from "./routes/space-routes.ts";

export interface Parts extends SpaceParts, InboxParts, MemoryParts {
  clock: Clock;
}

export function createRoutes(parts: Parts): (router: ConnectRouter) => void {
  return (router) => {
    router.service(SpaceService, spaceRoutes(parts));
    router.service(InboxService, inboxRoutes(parts));
    router.service(MemoryService, memoryRoutes(parts));
    router.service(ToolProviderService, providerRoutes(parts, parts.stopping));
  };
}
