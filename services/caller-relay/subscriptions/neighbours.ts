import { create } from "@bufbuild/protobuf";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { type ModelTool, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { withoutPrincipal } from "#runtime/rpc/identity.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { clientFor } from "../../clients.ts";
import type { LateResult } from "../requests/answers.ts";
import type { ReadSession } from "../sessions.ts";

const answerTimeoutMs = 10_000;

/**
 * The services that this one asks, on its own behalf: the router, whose session it is and which tools its agent has; the spaces, to keep a late result for the
 * agent. Who may act for a caller is decided here.
 */
export function createNeighbours(bus: Bus, telemetry: Telemetry) {
  const interceptors = clientInterceptors({ telemetry });
  const sessions = clientFor(bus, SessionService, { interceptors, defaultTimeoutMs: answerTimeoutMs });
  const tools = clientFor(bus, ToolService, { interceptors, defaultTimeoutMs: answerTimeoutMs });
  const inboxes = clientFor(bus, InboxDeliveryService, { interceptors, defaultTimeoutMs: answerTimeoutMs });

  const readSession: ReadSession = async (sessionId) => {
    try {
      const { session } = await withoutPrincipal(() => sessions.getSession({ sessionId }));
      return session ?? refuse("not_found", `no session ${sessionId}`, { reason: "SESSION_NOT_FOUND" });
    } catch (error) {
      throw failureFromConnectError(error);
    }
  };
  const tellInbox = async ({ sessionId, requestId, agent, tool, result }: LateResult): Promise<boolean> => {
    const event = create(InboxEventSchema, {
      eventId: `tr:${requestId}`,
      sessionId,
      agent,
      event: { case: "toolResult", value: { callId: requestId, tool, result } },
    });
    try {
      return !(await withoutPrincipal(() => inboxes.deliverEvent({ event }))).duplicate;
    } catch (error) {
      throw failureFromConnectError(error);
    }
  };
  const toolsOf = async (sessionId: string): Promise<readonly ModelTool[]> => {
    try {
      const scope = { case: "session", value: { sessionId } } as const;
      const pages = await withoutPrincipal(() =>
        allPages((pageToken) => tools.listTools({ scope, pageToken, pageSize: 1_000 })),
      );
      return pages.flatMap((page) => page.tools);
    } catch (error) {
      throw failureFromConnectError(error);
    }
  };
  return { readSession, tellInbox, toolsOf };
}
