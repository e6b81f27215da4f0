import type { ConnectRouter } from "@connectrpc/connect";
import { InboxService } from "#gen/toolbus/spaces/v1/inbox_pb.ts";
import { MemoryService } from "#gen/toolbus/spaces/v1/memory_pb.ts";
import { SpaceService } from "#gen/toolbus/spaces/v1/spaces_pb.ts";
import { ToolProviderService } from "#gen/toolbus/tool/v1/provider_pb.ts";
import type { Inbox } from "./inbox.ts";
import type { Memory } from "./memory.ts";
import { inboxRoutes } from "./routes/inbox-routes.ts";
import { memoryRoutes } from "./routes/memory-routes.ts";
import { providerRoutes } from "./routes/provider-routes.ts";
import { type SpaceParts, spaceRoutes } from "./routes/space-routes.ts";

export interface Parts extends SpaceParts {
  inbox: Inbox;
  memory: Memory;
}

export function createRoutes(parts: Parts): (router: ConnectRouter) => void {
  return (router) => {
    router.service(SpaceService, spaceRoutes(parts));
    router.service(InboxService, inboxRoutes(parts.inbox, parts.stopping));
    router.service(MemoryService, memoryRoutes(parts.memory));
    router.service(ToolProviderService, providerRoutes(parts, parts.stopping));
  };
}
