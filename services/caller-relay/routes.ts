import type { ConnectRouter } from "@connectrpc/connect";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { type ProviderRouteParts, providerRoutes } from "./routes/provider-routes.ts";
import { type RelayRouteParts, relayRoutes } from "./routes/relay-routes.ts";

export { createPeerRoutes } from "./routes/peer-routes.ts";

export function createRoutes(parts: RelayRouteParts & ProviderRouteParts): (router: ConnectRouter) => void {
  return (router) => {
    router.service(CallerService, relayRoutes(parts));
    router.service(ToolProviderService, providerRoutes(parts));
  };
}
