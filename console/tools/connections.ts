import type { McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { clientOf } from "../suite/connection.ts";

export async function listConnections(signal: AbortSignal): Promise<McpConnection[]> {
  const page = (pageToken: string) =>
    clientOf(McpServerService).listConnections({ pageSize: 1_000, pageToken }, { signal });
  return (await allPages(page)).flatMap(({ connections }) => connections);
}
