import type { Interceptor } from "@connectrpc/connect";
import type { NatsConnection } from "@nats-io/transport-node";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { type CallToolResponse, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";
import { refuseMissingSession } from "#runtime/failure/session-owner.ts";
import { withPrincipal } from "#runtime/rpc/identity.ts";
import { deliveryOf } from "#runtime/rpc/nats/call/delivery.ts";
import { wholeList } from "#runtime/rpc/paging/whole-list.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { clientFor } from "../../../clients.ts";
import { processOf } from "../../../processes.ts";
import { TakenOver } from "../../log/claim.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { createKnownAgents } from "../../loop/tools/known/known-agents.ts";
import { createKnownLists } from "../../loop/tools/known/known-lists.ts";
import type { RememberedAgents, ToolRouter } from "../../loop/tools/tool-router.ts";
import type { SessionSource } from "../../runs/create/creation.ts";

/** Reads from the memory of the router: one that takes longer is repeated. */
const readTimeoutMs = 10_000;
/** Tools are listed at their sources, some of which start first. */
const listTimeoutMs = 120_000;
/** Whoever asked for the cancellation waits for it. */
const cancelTimeoutMs = 2_000;

type Clients = ReturnType<typeof openClients>;

export function createRouterClients(
  bus: { connection: NatsConnection },
  interceptors: Interceptor[],
  onUnreleased: (error: unknown) => void = () => {},
) {
  const clients = openClients(bus, interceptors);
  const { bridge } = clients;
  return {
    /** Closes what is open for a run that brought MCP servers. Never rejects: unused connections are closed later all the same. */
    async releaseRun({ runId, accepted: { sessionId, agent, principal } }: FoldedRun): Promise<void> {
      const scope = { sessionId, agent, runId, principal };
      const release = () => bridge.releaseScope({ scope }, { timeoutMs: readTimeoutMs });
      await withPrincipal(principal, release).catch(onUnreleased);
    },
    router: toolRouterFrom(clients),
    agents: agentsFrom(clients),
    sessions: sessionsFrom(clients),
  };
}

function openClients(bus: { connection: NatsConnection }, interceptors: Interceptor[]) {
  return {
    bridge: clientFor(bus, ToolProviderService, { interceptors, process: processOf(McpServerService) }),
    tools: clientFor(bus, ToolService, { interceptors }),
    calls: clientFor(bus, ToolCallService, { interceptors }),
    agents: clientFor(bus, AgentService, { interceptors }),
    sessions: clientFor(bus, SessionService, { interceptors }),
  };
}

function toolRouterFrom({ tools, calls, sessions }: Clients): ToolRouter {
  const lists = createKnownLists();
  return {
    listTools(request, { signal, principal, agent }) {
      const session = request.scope?.case === "session" ? request.scope.value : undefined;
      const asked = request.scope?.case === "agent" ? request.scope.value : session?.sessionId;
      const list = (knownToolsRevision: string) => {
        const page = (pageToken: string) =>
          tools.listTools({ ...request, knownToolsRevision, pageToken }, { signal, timeoutMs: listTimeoutMs });
        return asFailures(principal, () => wholeList(page));
      };
      if (session?.runSources?.length) return list(""); // no other run has that list
      return lists.ask(`${agent ?? asked} ${session ? "in a session" : ""}`, list);
    },
    async agentOf(sessionId, { signal, principal }) {
      const read = () => sessions.getSession({ sessionId }, { signal, timeoutMs: readTimeoutMs });
      const { session } = await asFailures(principal, read);
      return session?.state === SessionState.ACTIVE ? session.agent : undefined;
    },
    async cancelCall(callId, reason, { signal, principal }) {
      const cancel = () => calls.cancelToolCall({ callId, reason }, { signal, timeoutMs: cancelTimeoutMs });
      await asFailures(principal, cancel);
    },
    async *callTool(request, { signal, principal }) {
      signal.throwIfAborted(); // nothing is sent then
      const leaving = new AbortController(); // a stream that is left goes on until its signal aborts
      const responses = withPrincipal(principal, () => tools.callTool(request, { signal: leaving.signal }));
      const unread = responses[Symbol.asyncIterator]();
      let next: IteratorResult<CallToolResponse> | undefined;
      try {
        for (;;) {
          next = await unlessAborted(unread.next(), signal);
          if (next.done) return;
          yield next.value;
        }
      } catch (error) {
        throw failureFrom(error);
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

function agentsFrom({ agents }: Clients): RememberedAgents {
  const known = createKnownAgents();
  return {
    knows: known.has,
    async getAgent(name, { signal, principal, contextRevision = 0 }) {
      const current = known.find(name, contextRevision);
      if (current !== undefined) return current;
      const read = () => agents.getAgent({ name }, { signal, timeoutMs: readTimeoutMs });
      const { agent: stored } = await asFailures(principal, read);
      if (stored?.agent === undefined)
        return refuse("not_found", `there is no agent ${JSON.stringify(name)}`, {
          reason: "AGENT_NOT_FOUND",
          metadata: { agent: name },
        });
      known.keep(stored);
      return stored.agent;
    },
  };
}

function sessionsFrom({ sessions }: Clients): SessionSource {
  return {
    async getSession(sessionId, { signal, principal }) {
      const read = () => sessions.getSession({ sessionId }, { signal, timeoutMs: readTimeoutMs });
      return (await asFailures(principal, read)).session ?? refuseMissingSession(sessionId);
    },
    async createSession(agent, { signal, principal, sessionId = "" }) {
      const open = () => sessions.createSession({ agent, sessionId }, { signal, timeoutMs: readTimeoutMs });
      return (
        (await asFailures(principal, open)).session ??
        refuse("internal", "the router opened no session", { reason: "INTERNAL" })
      );
    },
  };
}

async function asFailures<T>(principal: string, call: () => Promise<T>): Promise<T> {
  try {
    return await withPrincipal(principal, call);
  } catch (error) {
    throw failureFrom(error);
  }
}

/** A request that was not sent never started, and the error says so. */
function failureFrom(error: unknown): Failure {
  const failure = failureFromConnectError(error);
  if (deliveryOf(error) !== "NOT_SENT") return failure;
  return new Failure(failure.code, failure.message, { reason: "CALL_NOT_STARTED", cause: error });
}
