import type { DescService } from "@bufbuild/protobuf";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { RunContextService } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import { ToolMessageService } from "#gen/toolbus/internal/space/v1/tool_message_service_pb.ts";
import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { ProviderService } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { InboxService } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { MemoryService } from "#gen/toolbus/space/v1/memory_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { WorkerService } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { refuseLocally } from "#runtime/failure/local-failure.ts";

/**
 * Which process serves which service of the contract: to move a service, change its line. Nothing else in the suite says
 * so, and no name on the wire depends on it. `ToolProviderService` is not here: every provider serves it.
 */
const servedBy: readonly (readonly [DescService, string])[] = [
  [AgentService, "tool-router"],
  [AuditService, "tool-router"],
  [ProviderService, "tool-router"],
  [SessionService, "tool-router"],
  [ToolCallService, "tool-router"],
  [ToolCatalogService, "tool-router"],
  [ToolService, "tool-router"],
  [RunService, "orchestrator"],
  [McpContentService, "mcp-bridge"],
  [McpServerService, "mcp-bridge"],
  [CallerService, "caller-relay"],
  [WorkerService, "worker-pool"],
  [InboxService, "spaces"],
  [MemoryService, "spaces"],
  [SpaceService, "spaces"],
  [InboxDeliveryService, "spaces"],
  [RunContextService, "spaces"],
  [ToolMessageService, "spaces"],
];

const processByTypeName = new Map(servedBy.map(([service, process]) => [service.typeName, process]));

const ownProcesses = new Set(servedBy.map(([, process]) => process));

/** Whether a bus service is one of the suite's, or an instance of one: those have the release of who asks them. */
export function isOfSuite(process: string): boolean {
  return ownProcesses.has(process.split(".", 1)[0] ?? "");
}

/** The process that serves a service, by its name on the bus. Throws `invalid_argument` for one that many serve. */
export function processOf(service: Pick<DescService, "typeName">): string {
  const { typeName } = service;
  return (
    processByTypeName.get(typeName) ??
    refuseLocally("invalid_argument", `${typeName} is not served by one process: name the one that is meant`)
  );
}

/** What only the suite's own services call. */
const isInternal = (service: DescService) => service.typeName.startsWith("toolbus.internal.");

/** The services that clients outside may call. */
export const publicServices: readonly DescService[] = servedBy
  .map(([service]) => service)
  .filter((service) => !isInternal(service));

/** The services that only the suite's own processes call. */
export const internalServices: readonly DescService[] = servedBy.map(([service]) => service).filter(isInternal);
