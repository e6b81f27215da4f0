import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { type Caller, SELF, seesAll } from "#runtime/rpc/identity.ts";
import { byOwnClock } from "#runtime/time/duration.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { type OfferWatchParts, watchTools } from "./provider/offer-watch.ts";
import { type Asker, HOPS_HEADER, PEER_HEADER, type Provider } from "./provider/provider.ts";
import type { AskContent } from "./provider/session-content.ts";
import type { SessionResources, Subscriptions } from "./provider/session-resources.ts";
import { contentRoutes } from "./routes/content-routes.ts";
import { type ServerRoutes, serverRoutes } from "./routes/server-routes.ts";

export interface Routes extends OfferWatchParts, Omit<ServerRoutes, "isPeer" | "lasting"> {
  provider: Provider;
  askContent: AskContent;
  resources: SessionResources;
  subscriptions: Subscriptions;
  /** Ends watches when the service stops. */
  stopping: AbortSignal;
}

export function createRoutes(parts: Routes) {
  const { provider, askContent, resources, subscriptions, fleet, owners } = parts;
  /** A watch would wait for a session that is not there yet, and go on when it is somebody else's. */
  const requireSession = (sessionId: string, caller: Caller) =>
    owners.requireStanding(sessionId, seesAll(caller) ? SELF : caller);
  const lasting = ({ signal }: HandlerContext) => openEnding(signal, parts.stopping);

  return (router: ConnectRouter): void => {
    router.service(ToolProviderService, {
      getProvidedTools: (request, context) => provider.listTools(request, askerOf(context)),
      async *watchProvidedTools(request, context) {
        using ending = lasting(context);
        yield* watchTools(request, { ...askerOf(context), signal: ending.signal }, parts);
      },
      executeTool: (request, context) => provider.callTool(byOwnClock(request), askerOf(context)),
      async releaseScope({ scope }, { signal }) {
        const { sessionId = "", agent = "", runId = "" } = scope ?? {};
        if (sessionId === "" && agent === "") return { closedCount: 0 };
        const [, closedCount] = await Promise.all([
          runId === "" ? subscriptions.drop(sessionId) : undefined,
          fleet.release({ sessionId, agent, runId }, signal),
        ]);
        return { closedCount };
      },
    });
    router.service(
      McpContentService,
      contentRoutes({ askContent, resources, subscriptions, requireSession, askerOf, lasting }),
    );
    router.service(McpServerService, serverRoutes({ ...parts, isPeer, lasting }));
  };
}

function askerOf(context: HandlerContext): Asker {
  return { isPeer: isPeer(context), signal: context.signal };
}

function isPeer({ requestHeader }: HandlerContext): boolean {
  return requestHeader.has(PEER_HEADER) || requestHeader.has(HOPS_HEADER);
}
