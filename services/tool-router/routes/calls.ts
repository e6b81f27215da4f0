import { randomUUID } from "node:crypto";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { type ListToolsRequest, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { askerOf, isFromService } from "#runtime/rpc/identity.ts";
import { decodeRunContext } from "#runtime/rpc/run-context.ts";
import type { Calls } from "../calls/call.ts";
import type { Contexts } from "../sessions/contexts/contexts.ts";
import { explainTool } from "../sessions/contexts/explain.ts";
import { listTools, toolsRevision } from "../sessions/contexts/listing.ts";
import type { Ownership } from "../sessions/ownership.ts";
import type { Sessions } from "../sessions/sessions.ts";
import type { Spaces } from "../sessions/spaces.ts";

export interface CallRoutes {
  calls: Calls;
  contexts: Contexts;
  sessions: Sessions;
  ownership: Ownership;
  spaces: Spaces;
}

export function routeCalls(router: ConnectRouter, { calls, contexts, sessions, ownership, spaces }: CallRoutes): void {
  router.service(ToolService, {
    async listTools(request, context) {
      const { signal } = context;
      const sessionId = sessionOf(request);
      await ownership.requireSession(sessionId, askerOf(context));
      return sessions.whenSettled(sessionId, signal, () => listTools(contexts, request, signal));
    },
    async explainTool(request, context) {
      const { signal } = context;
      const sessionId = sessionOf(request);
      await ownership.requireSession(sessionId, askerOf(context));
      return sessions.whenSettled(sessionId, signal, () => explainTool({ contexts, spaces }, request, signal));
    },
    async *callTool(request, context) {
      await ownership.requireSession(request.sessionId, askerOf(context));
      const callId = request.callId || randomUUID();
      const origin = { signal: context.signal, isLost: () => isLost(context) };
      const told = decodeRunContext(request.runContext);
      const runContext = { ...told, recovering: told.recovering && isFromService(context) };
      for await (const event of calls.call({ ...request, callId, context: runContext }, origin)) {
        const isEnd = event.case === "result";
        yield { callId, event, ...(isEnd && { toolsRevision: toolsRevision(contexts, request.sessionId, request) }) };
      }
    },
  });
}

function sessionOf({ scope }: Pick<ListToolsRequest, "scope">): string {
  return scope.case === "sessionId" ? scope.value : "";
}

/** A caller that fell silent may come back for its call; one that cancelled will not. */
function isLost({ signal }: HandlerContext): boolean {
  return failureFromConnectError(signal.reason).code === "unavailable";
}
