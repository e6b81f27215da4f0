import { create } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { ApplyServerResponseSchema, McpServerService } from "#gen/toolbus/mcp/v1/mcp_servers_pb.ts";
import { ToolProviderService } from "#gen/toolbus/tool/v1/provider_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Fleet } from "./fleet.ts";
import { type OfferWatchParts, watchTools } from "./offer-watch.ts";
import type { Asker, Provider } from "./provider.ts";
import type { AppliedServers } from "./servers.ts";
import { validServer } from "./source.ts";

/** How often a request has gone from one instance of the bridge to another. */
export const HOPS_HEADER = "toolbus-bridge-hops";
/** Set by an instance that asks each of the others for its own part. */
export const OWN_PART_HEADER = "toolbus-bridge-own-part";

export interface Routes extends Omit<OfferWatchParts, "provider" | "connections"> {
  connections: OfferWatchParts["connections"];
  provider: Provider;
  applied: AppliedServers;
  fleet: Fleet;
  /** Ends watches when the service stops. */
  stopping: AbortSignal;
}

export function createRoutes(parts: Routes) {
  const { provider, applied, fleet } = parts;
  const lasting = ({ signal }: HandlerContext) => openEnding(signal, parts.stopping);

  return (router: ConnectRouter): void => {
    router.service(ToolProviderService, {
      listTools: (request, context) => provider.listTools(request, askerOf(context)),
      async *watchTools(request, context) {
        using ending = lasting(context);
        yield* watchTools(request, { ...askerOf(context), signal: ending.signal }, parts);
      },
      callTool: (request, context) => provider.callTool(request, askerOf(context)),
      async releaseScope({ scope }, { signal }) {
        const { sessionId = "", agent = "" } = scope ?? {};
        return { closed: sessionId === "" ? 0 : await fleet.release({ sessionId, agent }, signal) };
      },
    });
    router.service(McpServerService, {
      async applyServer({ server }, { signal }) {
        const given = server ?? refuse("invalid_argument", "server is missing");
        await applied.apply(validServer(given), signal);
        return create(ApplyServerResponseSchema, { server: given });
      },
      async deleteServer({ name }, { signal }) {
        if (await applied.remove(name, signal)) return {};
        return refuse("not_found", `there is no MCP server ${name}`, {
          reason: "SERVER_NOT_FOUND",
          metadata: { name },
        });
      },
      async listServers({ sessionId }, context) {
        if (isForOwnPart(context)) return { connections: fleet.ownStatuses(sessionId) };
        return { servers: applied.list(), connections: await fleet.statuses(sessionId, context.signal) };
      },
      async *watchHealth({ sessionId }, context) {
        const watch = isForOwnPart(context) ? fleet.watchOwn : fleet.watch;
        using ending = lasting(context);
        for await (const status of watch(sessionId, ending.signal)) yield { status };
      },
      async releaseScope({ sessionId, agent }, context) {
        const holder = { sessionId, agent };
        if (isForOwnPart(context)) return { closed: await fleet.releaseOwn(holder) };
        return { closed: await fleet.release(holder, context.signal) };
      },
    });
  };
}

function askerOf({ requestHeader, signal }: HandlerContext): Asker {
  return { hops: Number(requestHeader.get(HOPS_HEADER) ?? 0), signal };
}

function isForOwnPart({ requestHeader }: HandlerContext): boolean {
  return requestHeader.has(OWN_PART_HEADER);
}
