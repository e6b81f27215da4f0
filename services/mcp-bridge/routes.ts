import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import type { McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import {
  McpServerService,
  type StoredMcpServer,
  WatchConnectionsResponseSchema,
} from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import { requireOperator } from "#runtime/failure/operator.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { callerOf } from "#runtime/rpc/identity.ts";
import { pageOf } from "#runtime/rpc/paging/page.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Part } from "./connection/fleet.ts";
import { type OfferWatchParts, watchTools } from "./provider/offer-watch.ts";
import { HOPS_HEADER, OWN_PART_HEADER } from "./provider/peer-headers.ts";
import type { Asker, Provider } from "./provider/provider.ts";
import type { AppliedServers } from "./servers/servers.ts";
import { validServer } from "./servers/source.ts";

export interface Routes extends Omit<OfferWatchParts, "provider" | "connections"> {
  connections: OfferWatchParts["connections"];
  provider: Provider;
  applied: AppliedServers;
  /** The connections of this instance, and those of all. */
  own: Part;
  fleet: Part;
  /** Ends watches when the service stops. */
  stopping: AbortSignal;
}

export function createRoutes(parts: Routes) {
  const { provider, applied, own, fleet } = parts;
  const partFor = (context: HandlerContext) => (isForOwnPart(context) ? own : fleet);
  const lasting = ({ signal }: HandlerContext) => openEnding(signal, parts.stopping);

  return (router: ConnectRouter): void => {
    router.service(ToolProviderService, {
      getProvidedTools: (request, context) => provider.listTools(request, hopOf(context)),
      async *watchProvidedTools(request, context) {
        using ending = lasting(context);
        yield* watchTools(request, { ...hopOf(context), signal: ending.signal }, parts);
      },
      executeTool: (request, context) => provider.callTool(request, hopOf(context)),
      async releaseScope({ scope }, { signal }) {
        const { sessionId = "", agent = "", runId = "" } = scope ?? {};
        return { closedCount: sessionId === "" ? 0 : await fleet.release({ sessionId, agent, runId }, signal) };
      },
    });
    router.service(McpServerService, {
      async applyMcpServer({ server, ...conditions }, { requestHeader, signal }) {
        requireOperator("to apply an MCP server", callerOf({ requestHeader }));
        const given = server ?? refuseField("server", "is required");
        return { server: await applied.apply(validServer(given), { ...conditions, signal }) };
      },
      async getMcpServer({ name }, { signal }) {
        return { server: (await applied.read(name, signal)) ?? refuseMissing(name) };
      },
      async deleteMcpServer({ name, ...conditions }, { requestHeader, signal }) {
        requireOperator("to delete an MCP server", callerOf({ requestHeader }));
        if (await applied.remove(name, { ...conditions, signal })) return {};
        return refuseMissing(name);
      },
      async listMcpServers(request, { signal }) {
        await applied.caughtUp(signal);
        const named = { elements: applied.list(), placeOf: ({ server }: StoredMcpServer) => server?.name ?? "" };
        const { items, nextPageToken } = pageOf(["servers"], named, request);
        return { servers: items, nextPageToken };
      },
      async listConnections(request, context) {
        const { sessionId } = request;
        const elements = await partFor(context).list(sessionId, context.signal);
        const list = ["connections", sessionId, isForOwnPart(context) ? "own" : "all"];
        const { items, nextPageToken } = pageOf(list, { elements, placeOf: placeOfConnection }, request);
        return { connections: items, nextPageToken };
      },
      async *watchConnections({ sessionId }, context) {
        using ending = lasting(context);
        for await (const standing of partFor(context).watch(sessionId, ending.signal)) {
          const connections = standing.toSorted((a, b) => (placeOfConnection(a) < placeOfConnection(b) ? -1 : 1));
          yield withEtag(WatchConnectionsResponseSchema, { connections });
        }
      },
      async closeConnections({ sessionId, agent, runId }, context) {
        return { closedCount: await partFor(context).release({ sessionId, agent, runId }, context.signal) };
      },
    });
  };
}

function hopOf({ requestHeader, signal }: HandlerContext): Asker {
  return { hops: Number(requestHeader.get(HOPS_HEADER) ?? 0), signal };
}

function refuseMissing(name: string): never {
  return refuse("not_found", `there is no MCP server ${name}`, {
    reason: "MCP_SERVER_NOT_FOUND",
    metadata: { server: name },
  });
}

function placeOfConnection({ server, sessionId, agent, instance, id }: McpConnection): string {
  return [server, sessionId, agent, instance, id].join("\0");
}

function isForOwnPart({ requestHeader }: HandlerContext): boolean {
  return requestHeader.has(OWN_PART_HEADER);
}
