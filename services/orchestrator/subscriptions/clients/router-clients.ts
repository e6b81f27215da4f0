import type { Interceptor } from "@connectrpc/connect";
import type { NatsConnection } from "@nats-io/transport-node";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { type CallToolResponse, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";
import { refuseMissingSession } from "#runtime/failure/session-owner.ts";
import { type ClientOnBehalf, clientOnBehalf } from "#runtime/rpc/bus/client-on-behalf.ts";
import { withPrincipal } from "#runtime/rpc/identity.ts";
import { wholeList } from "#runtime/rpc/paging/whole-list.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { clientFor } from "../../../clients.ts";
import { processOf } from "../../../processes.ts";
import { TakenOver } from "../../log/claim.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { createKnownLists } from "../../loop/tools/known-lists.ts";
import type { Agents, ToolRouter } from "../../loop/tools/tool-router.ts";
import type { SessionSource } from "../../runs/create/creation.ts";

/** Reads from the memory of the router: one that takes longer is repeated. */
const readTimeoutMs = 10_000;
/** Tools are listed at their sources, some of which start first. */
const listTimeoutMs = 120_000;
/** Whoever asked for the cancellation waits for it. */
const cancelTimeoutMs = 2_000;

export function createRouterClients(
  bus: { connection: NatsConnection },
  interceptors: Interceptor[],
  onUnreleased: (error: unknown) => void = () => {},
) {
  const reading = { interceptors, defaultTimeoutMs: readTimeoutMs };
  const bridge = clientFor(bus, ToolProviderService, { ...reading, process: processOf(McpServerService) });
  const tools = clientOnBehalf(clientFor(bus, ToolService, { interceptors }));
  const agents = clientOnBehalf(clientFor(bus, AgentService, reading));
  const sessions = clientOnBehalf(clientFor(bus, SessionService, reading));
  const calls = clientOnBehalf(clientFor(bus, ToolCallService, { interceptors, defaultTimeoutMs: cancelTimeoutMs }));
  const router: ToolRouter = {
    ...toolsFrom(tools),
    cancelToolCall: calls.cancelToolCall,
    async agentOf(sessionId, by) {
      const { session } = await sessions.getSession({ sessionId }, by);
      return session?.state === SessionState.ACTIVE ? session.agent : undefined;
    },
  };
  return {
    /** Closes what is open for a run that brought MCP servers. Never rejects: unused connections are closed later all the same. */
    async releaseRun({ runId, accepted: { sessionId, agent, principal } }: FoldedRun): Promise<void> {
      const scope = { sessionId, agent, runId, principal };
      await withPrincipal(principal, () => bridge.releaseScope({ scope })).catch(onUnreleased);
    },
    router,
    agents: agentsFrom(agents),
    sessions: sessionsFrom(sessions),
  };
}

function toolsFrom(tools: ClientOnBehalf<typeof ToolService>): Pick<ToolRouter, "listTools" | "callTool"> {
  const lists = createKnownLists();
  return {
    listTools(request, { signal, principal, agent }) {
      const session = request.scope?.case === "session" ? request.scope.value : undefined;
      const asked = request.scope?.case === "agent" ? request.scope.value : session?.sessionId;
      const by = { signal, principal, timeoutMs: listTimeoutMs };
      const list = (knownToolsRevision: string) =>
        wholeList((pageToken) => tools.listTools({ ...request, knownToolsRevision, pageToken }, by));
      if (session?.runSources?.length) return list(""); // no other run has that list
      return lists.ask(`${agent ?? asked} ${session ? "in a session" : ""}`, list);
    },
    async *callTool(request, { signal, principal }) {
      signal.throwIfAborted(); // nothing is sent then
      const leaving = new AbortController(); // a stream that is left goes on until its signal aborts
      const responses = tools.callTool(request, { signal: leaving.signal, principal });
      const unread = responses[Symbol.asyncIterator]();
      let next: IteratorResult<CallToolResponse> | undefined;
      try {
        for (;;) {
          next = await unlessAborted(unread.next(), signal);
          if (next.done) return;
          yield next.value;
        }
      } finally {
        if (isLeftToOthers(signal))
          void Array.fromAsync(responses, () => {}).catch(() => {}); // unread, it takes up room
        else if (!next?.done) leaving.abort(signal.reason);
      }
    },
  };
}

/** The process that goes on with the run joins the call: it is not canceled. */
function isLeftToOthers({ reason }: AbortSignal): boolean {
  return reason instanceof TakenOver || (reason instanceof Failure && reason.code === "unavailable");
}

function agentsFrom(agents: ClientOnBehalf<typeof AgentService>): Agents {
  return {
    async getAgent(name, by) {
      const { agent: stored } = await agents.getAgent({ name }, by);
      const details = { reason: "AGENT_NOT_FOUND", metadata: { agent: name } } as const;
      return stored?.agent ?? refuse("not_found", `there is no agent ${JSON.stringify(name)}`, details);
    },
  };
}

function sessionsFrom(sessions: ClientOnBehalf<typeof SessionService>): SessionSource {
  return {
    async getSession(sessionId, by) {
      const { session } = await sessions.getSession({ sessionId }, by);
      return session ?? refuseMissingSession(sessionId);
    },
    async createSession(agent, { sessionId = "", ...by }) {
      const { session } = await sessions.createSession({ agent, sessionId }, by);
      return session ?? refuse("internal", "the router opened no session", { reason: "INTERNAL" });
    },
  };
}
