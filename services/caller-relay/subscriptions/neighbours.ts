import { create } from "@bufbuild/protobuf";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { type ModelTool, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { askOnOwnBehalf, clientFor, sessionReader } from "../../clients.ts";
import type { LateResult } from "../requests/answers.ts";

const answerTimeoutMs = 10_000;

/**
 * The services that this one asks, on its own behalf: the router, whose session it is and which tools its agent has; the spaces, to keep a late result for the
 * agent. Who may act for a caller is decided here.
 */
export function createNeighbours(bus: Bus, telemetry: Telemetry) {
  const options = { interceptors: clientInterceptors({ telemetry }), defaultTimeoutMs: answerTimeoutMs };
  const tools = clientFor(bus, ToolService, options);
  const inboxes = clientFor(bus, InboxDeliveryService, options);

  const tellInbox = async ({ sessionId, requestId, agent, tool, result }: LateResult): Promise<boolean> => {
    const event = create(InboxEventSchema, {
      eventId: `tr:${requestId}`,
      sessionId,
      agent,
      event: { case: "toolResult", value: { callId: requestId, tool, result } },
    });
    return !(await askOnOwnBehalf(() => inboxes.deliverEvent({ event }))).duplicate;
  };
  const toolsOf = async (sessionId: string): Promise<readonly ModelTool[]> => {
    const scope = { case: "session", value: { sessionId } } as const;
    const pages = await askOnOwnBehalf(() =>
      allPages((pageToken) => tools.listTools({ scope, pageToken, pageSize: 1_000 })),
    );
    return pages.flatMap((page) => page.tools);
  };
  return { readSession: sessionReader(bus, options), tellInbox, toolsOf };
}
