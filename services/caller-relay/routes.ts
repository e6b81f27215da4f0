import type { ConnectRouter } from "@connectrpc/connect";
import { CallerRelayService } from "#gen/toolbus/relay/v1/caller_relay_pb.ts";
import { ToolProviderService } from "#gen/toolbus/tool/v1/provider_pb.ts";
import { type ProviderRouteParts, providerRoutes } from "./routes/provider-routes.ts";
import { type RelayRouteParts, relayRoutes } from "./routes/relay-routes.ts";

export { createPeerRoutes } from "./routes/peer-routes.ts";

export function createRoutes(parts: RelayRouteParts & ProviderRouteParts): (router: ConnectRouter) => void {
  return (router) => {
    router.service(CallerRelayService, relayRoutes(parts));
    router.service(ToolProviderService, providerRoutes(parts));
  };
}
