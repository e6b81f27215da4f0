import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { LoginState, type McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import {
  type McpServerService,
  type StoredMcpServer,
  WatchConnectionsResponseSchema,
} from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { type Audit, auditAct } from "#runtime/audit/trail.ts";
import { Failure, refuse, refuseField } from "#runtime/failure/failure.ts";
import type { SessionOwners } from "#runtime/rpc/access/session-owners.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { type Caller, callerOf, seesAll } from "#runtime/rpc/identity.ts";
import { pageOf } from "#runtime/rpc/paging/page.ts";
import type { Ending } from "#runtime/time/ending.ts";
import type { Logins } from "../auth/logins.ts";
import type { Part } from "../connection/fleet.ts";
import { publicServer } from "../servers/public-view.ts";
import type { AppliedServers } from "../servers/servers.ts";
import { validServer } from "../servers/source.ts";

export interface ServerRoutes {
  applied: AppliedServers;
  logins: Logins;
  /** The connections of this instance, and those of all. */
  own: Part;
  fleet: Part;
  /** Whose sessions are whose. */
  owners: SessionOwners;
  audit: Audit;
  /** Whether another instance asks, which is told of this one alone. */
  isPeer: (context: HandlerContext) => boolean;
  /** Ends watches when the service stops. */
  lasting: (context: HandlerContext) => Ending;
}

/** Servers for every agent, the logins at them, and the connections to all. */
export function serverRoutes(parts: ServerRoutes): ServiceImpl<typeof McpServerService> {
  const { applied, logins, own, fleet, owners, isPeer, lasting } = parts;
  const partFor = (context: HandlerContext) => (isPeer(context) ? own : fleet);
  const requireSession = async (sessionId: string, caller: Caller) => {
    if (!seesAll(caller)) await owners.requireSession(sessionId, caller);
  };
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
  const act = (context: HandlerContext, event: Parameters<Audit>[0], did: string) =>
    auditAct(parts.audit, callerOf(context), event, did);
  const auditChange = (tool: string, change: "applied" | "removed", context: HandlerContext) =>
    act(context, { kind: AuditKind.CONFIGURED, tool }, `MCP server ${tool} was ${change}`);
  const auditLogin = (rule: string, tool: string, context: HandlerContext) =>
    act(context, { kind: AuditKind.LOGIN, rule, tool }, `the login at MCP server ${tool} was ${rule}`);
  /** Tells what was refused at a server that is known: what somebody makes up leads to none. */
  const toldRefusal = async <T>(context: HandlerContext, login: Promise<T>): Promise<T> => {
    try {
      return await login;
    } catch (error) {
      if (error instanceof Failure && error.reason === "MCP_LOGIN_FAILED") {
        const event = { kind: AuditKind.LOGIN, rule: "refused", tool: error.metadata?.server ?? "" };
        act(context, event, `${error.message}, asked for`);
      }
      throw error;
    }
  };

  return {
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
      const { expiresAtMs, ...begun } = await toldRefusal(context, logins.begin(request, callerOf(context)));
      auditLogin("begun", request.server, context);
      return { ...begun, expireTime: timestampFromMs(expiresAtMs) };
    },
    async completeLogin(request, context) {
      const login = await toldRefusal(context, logins.complete(request, callerOf(context)));
      auditLogin("finished", login.server, context);
      return login;
    },
    async deleteLogin({ server }, context) {
      await logins.forget(server, callerOf(context));
      auditLogin("forgotten", server, context);
      return {};
    },
    async closeConnections({ sessionId, agent, runId }, context) {
      await requireSession(sessionId, callerOf(context));
      const closedCount = await partFor(context).release({ sessionId, agent, runId }, context.signal);
      const event = { kind: AuditKind.STOPPED, sessionId, agent, runId };
      if (!isPeer(context)) act(context, event, `${closedCount} connections to MCP servers were closed`);
      return { closedCount };
    },
  };
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
