import { randomUUID } from "node:crypto";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { type ListToolsRequest, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import type { SessionOwners } from "#runtime/rpc/access/session-owners.ts";
import { type Caller, callerOf } from "#runtime/rpc/identity.ts";
import { decodeRunContext } from "#runtime/rpc/run-context.ts";
import { byOwnClock } from "#runtime/time/duration.ts";
import type { CarryOut } from "../calls/call.ts";
import type { InFlightCalls } from "../calls/in-flight.ts";
import { type Catalogue, refuseMissing } from "../catalogue/catalogue.ts";
import type { Contexts } from "../sessions/contexts/contexts.ts";
import { explainTool, type LeftUnchecked } from "../sessions/contexts/explain.ts";
import { listTools, toolsRevision } from "../sessions/contexts/listing.ts";
import type { Sessions } from "../sessions/sessions.ts";
import type { Spaces } from "../sessions/spaces.ts";
import { refuseDerivedCall } from "./derived-ids.ts";

export interface CallRoutes {
  inFlight: InFlightCalls;
  carryOut: CarryOut;
  catalogue: Catalogue;
  contexts: Contexts;
  sessions: Sessions;
  ownership: SessionOwners;
  spaces: Spaces;
  leftUnchecked: LeftUnchecked;
}

export function routeCalls(router: ConnectRouter, routes: CallRoutes): void {
  const { inFlight, carryOut, catalogue, contexts, ownership } = routes;
  /** A session of one's own, or an agent that one may use. */
  async function requireScope({ scope }: Pick<ListToolsRequest, "scope">, caller: Caller): Promise<void> {
    if (scope.case === "session") await ownership.requireStanding(scope.value.sessionId, caller);
    if (scope.case === "agent") await catalogue.requireAgent(scope.value, caller);
  }

  router.service(ToolService, {
    async listTools(request, context) {
      const { signal } = context;
      await requireScope(request, callerOf(context));
      return listTools(routes, request, signal);
    },
    async explainTool(request, context) {
      const { signal } = context;
      await requireScope(request, callerOf(context));
      return explainTool(routes, request, signal);
    },
    async approveTools({ agent, approvals }, context) {
      await catalogue.caughtUp();
      if (catalogue.agent(agent) === undefined) refuseMissing("agent", agent);
      const { pins } = catalogue;
      const changes =
        approvals.length === 0
          ? pins.changes(agent)
          : await pins.approve(agent, approvals, callerOf(context).principal ?? "the suite");
      return { changes: changes.map(({ $typeName, agent: _, ...change }) => change) };
    },
    async *callTool(asked, context) {
      const request = byOwnClock(asked);
      refuseDerivedCall(request.callId, callerOf(context));
      await ownership.requireStanding(request.sessionId, callerOf(context));
      const callId = request.callId || randomUUID();
      const told = decodeRunContext(request.runContext);
      const runContext = { ...told, recovering: told.recovering && callerOf(context).service !== undefined };
      const { sessionId, runId, name, argumentsJson } = request;
      const identity = { sessionId, runId, name, argumentsJson };
      const waiter = { callId, identity, signal: context.signal, isLost: () => isLost(context) };
      const call = { ...request, callId, principal: callerOf(context).principal, context: runContext };
      for await (const event of inFlight.join(waiter, (control) => carryOut(call, control))) {
        if (event.case !== "result") {
          yield { callId, event };
          continue;
        }
        const { $typeName, ...answer } = event.value;
        const revision = toolsRevision(contexts, request.sessionId, request);
        yield { callId, event: { case: "result", value: { ...answer, toolsRevision: revision } } };
      }
    },
  });
}

/** A caller that fell silent may come back for its call; one that canceled will not. */
function isLost({ signal }: HandlerContext): boolean {
  return failureFromConnectError(signal.reason).code === "unavailable";
}
