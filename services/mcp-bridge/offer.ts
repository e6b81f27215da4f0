import { create } from "@bufbuild/protobuf";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { GetProvidedToolsResponse, OfferedTool } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { type SourceStatus, SourceStatusSchema } from "#gen/toolbus/tool/v1/source_pb.ts";
import { sourceOfServer } from "./servers.ts";

export type AskedSource = ReturnType<typeof sourceOfServer>;

/** What one source offers. */
export interface SourceOffer {
  tools: OfferedTool[];
  status: SourceStatus;
}

export function failedOffer(source: string, reason: string): SourceOffer {
  return { tools: [], status: create(SourceStatusSchema, { source, reason }) };
}

export function offerFromList(
  source: string,
  listed: Pick<GetProvidedToolsResponse, "tools" | "sources">,
): SourceOffer {
  const [status] = listed.sources;
  return status ? { tools: listed.tools, status } : failedOffer(source, "its owner says nothing of it");
}

export function forwardedSource(server: McpServer) {
  return { $typeName: "toolbus.tool.v1.Source" as const, ...sourceOfServer(server) };
}
