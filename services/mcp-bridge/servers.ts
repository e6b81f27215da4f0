import { toJson } from "@bufbuild/protobuf";
import { type McpServer, McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Changes } from "./connection/changes.ts";
import { parseServer } from "./source.ts";

/** The servers that every agent can use, as stored. */
export interface AppliedServers {
  readonly changes: Pick<Changes, "next">;
  list(): McpServer[];
  find(name: string): McpServer | undefined;
  apply(server: McpServer, signal: AbortSignal): Promise<void>;
  /** False when there is none of that name. */
  remove(name: string, signal: AbortSignal): Promise<boolean>;
}

/** What a source means: what it describes, or the server that was applied under its name. */
export function serverOfSource(source: Pick<Source, "name" | "config">, applied: AppliedServers): McpServer {
  if (source.config && Object.keys(source.config).length > 0) return parseServer(source.name, source.config);
  return (
    applied.find(source.name) ??
    refuse(
      "not_found",
      `there is no MCP server ${source.name}: its source says neither url nor command, and none was applied`,
      {
        reason: "SERVER_NOT_FOUND",
      },
    )
  );
}

export function sourceOfServer(server: McpServer): Pick<Source, "name" | "config"> {
  const config = toJson(McpServerSchema, server);
  return {
    name: server.name,
    config: typeof config === "object" && config !== null && !Array.isArray(config) ? config : {},
  };
}
