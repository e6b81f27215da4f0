import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { LoginState, type McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import {
  McpServerService,
  type StoredMcpServer,
  WatchConnectionsResponseSchema,
} from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { AuditTrail } from "#runtime/audit/trail.ts";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import type { SessionOwners } from "#runtime/rpc/access/session-owners.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { type Caller, callerOf, principalOf, SELF, seesAll } from "#runtime/rpc/identity.ts";
import { pageOf } from "#runtime/rpc/paging/page.ts";
import { byOwnClock } from "#runtime/time/duration.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Logins } from "./auth/logins.ts";
import type { Part } from "./connection/fleet.ts";
import { type OfferWatchParts, watchTools } from "./provider/offer-watch.ts";
import { type Asker, HOPS_HEADER, PEER_HEADER, type Provider } from "./provider/provider.ts";
import type { AskContent } from "./provider/session-content.ts";
import type { SessionResources } from "./provider/session-resources.ts";
import { contentRoutes } from "./routes/content-routes.ts";
import { publicServer } from "./servers/public-view.ts";
import { validServer } from "./servers/source.ts";

export interface Routes extends OfferWatchParts {
  provider: Provider;
  logins: Logins;
  askContent: AskContent;
  resources: SessionResources;
  /** The connections of this instance, and those of all. */
  own: Part;
  fleet: Part;
  /** Whose sessions are whose. */
  owners: SessionOwners;
  audit: AuditTrail["record"];
  /** Ends watches when the service stops. */
  stopping: AbortSignal;
}

export function createRoutes(parts: Routes) {
  const { provider, applied, logins, askContent, resources, own, fleet, owners } = parts;
  const partFor = (context: HandlerContext) => (isPeer(context) ? own : fleet);
  const requireSession = async (sessionId: string, caller: Caller) => {
    if (!seesAll(caller)) await owners.requireSession(sessionId, caller);
  };
  /** A watch would wait for a session that is not there yet, and go on when it is somebody else's. */
  const requireStanding = (sessionId: string, caller: Caller) =>
    owners.requireStanding(sessionId, seesAll(caller) ? SELF : caller);
  /** Of a session of one's own; what sessions share is for operators. */
  const shownTo = async (caller: Caller, connections: McpConnection[]) => {
    if (seesAll(caller)) return connections;
    const own = await Promise.all(connections.map(({ sessionId }) => owners.isOwnSession(sessionId, caller)));
    return connections.filter((_, index) => own[index]);
  };
  const shownServer = (stored: StoredMcpServer, caller: Caller): StoredMcpServer => {
    const login = stored.server ? logins.stateOf(stored.server, caller) : LoginState.UNSPECIFIED;
    return { ...(seesAll(caller) ? stored : publicServer(stored)), login };
  };
  const auditChange = (name: string, change: "applied" | "removed", context: HandlerContext) => {
    const message = `MCP server ${name} was ${change} by ${principalOf(callerOf(context))}`;
    parts.audit({ kind: AuditKind.CONFIGURED, tool: name, message });
  };
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
          runId === "" ? resources.leave(sessionId) : undefined,
          fleet.release({ sessionId, agent, runId }, signal),
        ]);
        return { closedCount };
      },
    });
    router.service(
      McpContentService,
      contentRoutes({ askContent, resources, requireSession: requireStanding, askerOf, lasting }),
    );
    router.service(McpServerService, {
      async applyMcpServer({ server, ...conditions }, context) {
        const given = server ?? refuseField("server", "is required");
        const { stored, hasChanged } = await applied.apply(validServer(given), {
          ...conditions,
          signal: context.signal,
        });
        if (hasChanged) auditChange(given.name, "applied", context);
        return { server: stored };
      },
      async getMcpServer({ name }, context) {
        const server = (await applied.read(name, context.signal)) ?? refuseMissing(name);
        return { server: shownServer(server, callerOf(context)) };
      },
      async deleteMcpServer({ name, ...conditions }, context) {
        if (!(await applied.remove(name, { ...conditions, signal: context.signal }))) refuseMissing(name);
        auditChange(name, "removed", context);
        return {};
      },
      async listMcpServers(request, context) {
        await applied.caughtUp(context.signal);
        const elements = applied.list().map((server) => shownServer(server, callerOf(context)));
        const named = { elements, placeOf: ({ server }: StoredMcpServer) => server?.name ?? "" };
        const { items, nextPageToken } = pageOf(["servers"], named, request);
        return { servers: items, nextPageToken };
      },
      async listConnections(request, context) {
        const { sessionId } = request;
        const caller = callerOf(context);
        await requireSession(sessionId, caller);
        const elements = await shownTo(caller, await partFor(context).list(sessionId, context.signal));
        const list = ["connections", caller.principal ?? "", sessionId, isPeer(context) ? "own" : "all"];
        const { items, nextPageToken } = pageOf(list, { elements, placeOf: placeOfConnection }, request);
        return { connections: items, nextPageToken };
      },
      async *watchConnections({ sessionId }, context) {
        using ending = lasting(context);
        const caller = callerOf(context);
        await requireSession(sessionId, caller);
        for await (const standing of partFor(context).watch(sessionId, ending.signal)) {
          const shown = await shownTo(caller, standing);
          const connections = shown.toSorted((a, b) => (placeOfConnection(a) < placeOfConnection(b) ? -1 : 1));
          yield withEtag(WatchConnectionsResponseSchema, { connections });
        }
      },
      async beginLogin(request, context) {
        const { expiresAtMs, ...begun } = await logins.begin(request, callerOf(context));
        return { ...begun, expireTime: timestampFromMs(expiresAtMs) };
      },
      completeLogin: (request, context) => logins.complete(request, callerOf(context)),
      async deleteLogin({ server }, context) {
        await logins.forget(server, callerOf(context));
        return {};
      },
      async closeConnections({ sessionId, agent, runId }, context) {
        await requireSession(sessionId, callerOf(context));
        return { closedCount: await partFor(context).release({ sessionId, agent, runId }, context.signal) };
      },
    });
  };
}

function askerOf(context: HandlerContext): Asker {
  return { isPeer: isPeer(context), signal: context.signal };
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

function isPeer({ requestHeader }: HandlerContext): boolean {
  return requestHeader.has(PEER_HEADER) || requestHeader.has(HOPS_HEADER);
}
