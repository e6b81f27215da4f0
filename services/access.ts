// What each process of the suite does on the bus beyond serving: whom it asks, and what it stores. Its permissions follow
// from this table and from `processes.ts`: see bus-users.ts. What is missing here is refused by nats-server.

import type { DescService } from "@bufbuild/protobuf";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { RunContextService } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import { ToolMessageService } from "#gen/toolbus/internal/space/v1/tool_message_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { InboxService } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { StoresAccess } from "#runtime/bus/credentials/permissions.ts";
import { probeSubjects } from "#runtime/bus/link/storage.ts";
import { publicServices } from "./processes.ts";

export interface Access {
  /** Services of the contract that it asks, at the process that serves each. */
  readonly asks: readonly DescService[];
  /** Processes whose tools it asks for, as a provider; `*` is every provider, third parties too. */
  readonly asksProviders?: readonly string[];
  readonly stores: StoresAccess;
  /** Subjects on which its own instances speak with each other. */
  readonly among?: readonly string[];
  /**
   * For whom it may ask beside itself: `callers` are whom the gateway has authenticated, with their roles; `principals` are
   * those for whom a service works when no request of theirs is there any more. Unless told, it asks for itself alone.
   */
  readonly speaksFor?: "callers" | "principals";
}

export const ACCESS = {
  gateway: {
    asks: publicServices,
    stores: {
      toolbus_grants: "owns",
      toolbus_gateway_keys: "owns",
      toolbus_subject_tokens: { writes: ["token.>"] },
      TOOLBUS_PROBE: "owns",
    },
    among: [probeSubjects],
    speaksFor: "callers",
  },
  orchestrator: {
    speaksFor: "principals", // whose runs it turns
    asks: [
      AgentService,
      InboxDeliveryService,
      InboxService,
      RunContextService,
      SessionService,
      SpaceService,
      ToolCallService,
      ToolMessageService,
      ToolService,
    ],
    asksProviders: ["mcp-bridge"],
    stores: {
      TOOLBUS_RUNS: "owns",
      TOOLBUS_WAKES: "owns",
      TOOLBUS_TIMERS: "owns",
      toolbus_results: "owns",
      TOOLBUS_AUDIT: { writes: ["toolbus.audit.orchestrator.>"] },
    },
    among: ["toolbus.delta.*", "toolbus.deleted.run", "toolbus.owner.orchestrator.*"],
  },
  "tool-router": {
    speaksFor: "principals", // whose runs it cancels, and whose models it asks for servers
    asks: [InboxDeliveryService, RunService, SessionService, SpaceService, ToolMessageService],
    asksProviders: ["*"],
    stores: {
      TOOLBUS_OFFERS: "owns",
      TOOLBUS_AUDIT: "owns",
      toolbus_calls: "owns",
      toolbus_tasks: "owns",
      toolbus_agents: "owns",
      toolbus_tools: "owns",
      toolbus_sessions: "owns",
      toolbus_router_keys: "owns",
      toolbus_grants: { writes: [] },
      toolbus_results: "owns",
      TOOLBUS_WAKES: { writes: ["toolbus.wake.*"] },
    },
    among: ["toolbus.call.>", "toolbus.offer.>", "toolbus.session.>", "toolbus.watch.>"],
  },
  "mcp-bridge": {
    asks: [AgentService, SessionService, ToolService],
    stores: {
      toolbus_tools: { writes: ["mcp-server.>"] },
      toolbus_mcp_logins: "owns",
      toolbus_mcp_subscriptions: "owns",
      toolbus_subject_tokens: "owns",
      toolbus_owners: { writes: ["mcp-connection.>"] },
      TOOLBUS_AUDIT: { writes: ["toolbus.audit.mcp-bridge.>"] },
    },
    among: ["toolbus.owner.mcp-connection.>"],
  },
  "caller-relay": {
    asks: [InboxDeliveryService, SessionService, ToolService],
    stores: {
      toolbus_callers: "owns",
      toolbus_answers: "owns",
      toolbus_caller_results: "owns",
      toolbus_owners: { writes: ["caller.>"] },
      TOOLBUS_AUDIT: { writes: ["toolbus.audit.caller-relay.>"] },
    },
    among: ["toolbus.owner.caller-request.>"],
  },
  "worker-pool": {
    speaksFor: "principals", // whose calls hosted modules carry out by further ones
    asks: [RunService, SessionService, ToolService],
    stores: { TOOLBUS_AUDIT: { writes: ["toolbus.audit.worker-pool.>"] } },
  },
  spaces: {
    asks: [SessionService, ToolCallService],
    stores: {
      TOOLBUS_SPACES: "owns",
      TOOLBUS_INBOX: "owns",
      toolbus_memory: "owns",
      toolbus_active_spaces: "owns",
      toolbus_spaces: "owns",
      toolbus_inbox_seen: "owns",
      toolbus_grants: { writes: [] },
      toolbus_results: { writes: [] },
      TOOLBUS_WAKES: { writes: ["toolbus.wake.*"] },
      TOOLBUS_AUDIT: { writes: ["toolbus.audit.spaces.>"] },
    },
  },
} as const satisfies Readonly<Record<string, Access>>;

/** The services that answer when their process is asked as a provider. */
export const providerService: DescService = ToolProviderService;
