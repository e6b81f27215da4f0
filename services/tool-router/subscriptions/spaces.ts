import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { ToolMessageService } from "#gen/toolbus/internal/space/v1/tool_message_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { withPrincipal } from "#runtime/rpc/identity.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { askOnOwnBehalf, clientFor } from "../../clients.ts";
import type { ForgetSession, IsForPrincipal, LeaveSpace, Spaces } from "../sessions/spaces.ts";

const TIMEOUT_MS = 10_000;

/**
 * The spaces service, as the router sees it. The router asks on its own behalf, unless it asks what a principal may: one that submits a
 * result need not own the session to which the result goes.
 */
export function createSpaces(
  bus: Bus,
  telemetry?: Pick<Telemetry, "clientTracing">,
): Spaces & { forgetSession: ForgetSession; isFor: IsForPrincipal; leaveSpace: LeaveSpace } {
  const interceptors = clientInterceptors({ telemetry });
  const spaces = clientFor(bus, SpaceService, { interceptors });
  const toolMessages = clientFor(bus, ToolMessageService, { interceptors });
  const inbox = clientFor(bus, InboxDeliveryService, { interceptors });
  const options = { timeoutMs: TIMEOUT_MS };
  const activeSpace = async (sessionId: string, agent: string) =>
    (await askOnOwnBehalf(() => spaces.getActiveSpace({ sessionId, agent }, options))).spaceId;
  return {
    activeSpace,
    async leaveSpace(sessionId, agent) {
      const spaceId = await activeSpace(sessionId, agent);
      const member = { case: "agent", value: { sessionId, agent } } as const;
      if (spaceId !== "") await askOnOwnBehalf(() => spaces.leaveSpace({ spaceId, member }, options));
    },
    async isFor(spaceId, principal) {
      try {
        await withPrincipal(principal, () => spaces.getSpace({ spaceId }, options));
        return true;
      } catch (error) {
        const failure = failureFromConnectError(error);
        if (failure.code === "permission_denied" || failure.code === "not_found") return false;
        throw failure;
      }
    },
    recordToolMessage: async (request) =>
      void (await askOnOwnBehalf(() => toolMessages.recordToolMessage(request, options))),
    forgetSession: async (request) => (await askOnOwnBehalf(() => inbox.forgetSession(request, options))).forgotten,
    deliverEvent: async (request) => void (await askOnOwnBehalf(() => inbox.deliverEvent(request, options))),
  };
}
