import type { DescFile, DescService } from "@bufbuild/protobuf";
import { file_toolbus_mcp_v1_mcp_servers } from "#gen/toolbus/mcp/v1/mcp_servers_pb.ts";
import { file_toolbus_orchestrator_v1_run_service } from "#gen/toolbus/orchestrator/v1/run_service_pb.ts";
import { file_toolbus_relay_v1_caller_relay } from "#gen/toolbus/relay/v1/caller_relay_pb.ts";
import { file_toolbus_router_v1_agents } from "#gen/toolbus/router/v1/agents_pb.ts";
import { file_toolbus_router_v1_audit } from "#gen/toolbus/router/v1/audit_pb.ts";
import { file_toolbus_router_v1_catalogue } from "#gen/toolbus/router/v1/catalogue_pb.ts";
import { file_toolbus_router_v1_sessions } from "#gen/toolbus/router/v1/sessions_pb.ts";
import { file_toolbus_router_v1_tool_calls } from "#gen/toolbus/router/v1/tool_calls_pb.ts";
import { file_toolbus_router_v1_tool_router } from "#gen/toolbus/router/v1/tool_router_pb.ts";
import { file_toolbus_spaces_v1_inbox } from "#gen/toolbus/spaces/v1/inbox_pb.ts";
import { file_toolbus_spaces_v1_memory } from "#gen/toolbus/spaces/v1/memory_pb.ts";
import { file_toolbus_spaces_v1_spaces } from "#gen/toolbus/spaces/v1/spaces_pb.ts";
import { file_toolbus_worker_v1_workers } from "#gen/toolbus/worker/v1/workers_pb.ts";

/** The files of the contract that have services for the outside, one package a room. */
const contractFiles: readonly DescFile[] = [
  file_toolbus_mcp_v1_mcp_servers,
  file_toolbus_orchestrator_v1_run_service,
  file_toolbus_relay_v1_caller_relay,
  file_toolbus_router_v1_agents,
  file_toolbus_router_v1_audit,
  file_toolbus_router_v1_catalogue,
  file_toolbus_router_v1_sessions,
  file_toolbus_router_v1_tool_calls,
  file_toolbus_router_v1_tool_router,
  file_toolbus_spaces_v1_inbox,
  file_toolbus_spaces_v1_memory,
  file_toolbus_spaces_v1_spaces,
  file_toolbus_worker_v1_workers,
];

/**
 * What the gateway offers. The provider contract (`ToolProviderService`) is not among it: a call to a provider that does
 * not come from the router would pass by every policy.
 */
export const contractServices: readonly DescService[] = contractFiles.flatMap((file) => file.services);
