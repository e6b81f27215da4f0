import { toJson } from "@bufbuild/protobuf";
import { type McpServer, McpServerSchema, Share } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { StoredMcpServer } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";
import type { Changes } from "#runtime/collections/changes.ts";
import { faultsOfRunServer, type RunServers } from "#runtime/config/run-servers.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { parseServer } from "./source.ts";

/** The servers that every agent can use, as stored. */
export interface AppliedServers {
  readonly changes: Pick<Changes, "next">;
  /** Waits until `list` shows every change that was acknowledged before, by whichever instance. */
  caughtUp(signal: AbortSignal): Promise<void>;
  /** As far as this instance has followed them. */
  list(): StoredMcpServer[];
  find(name: string): McpServer | undefined;
  /** As it is stored at this moment. */
  read(name: string, signal: AbortSignal): Promise<StoredMcpServer | undefined>;
  /** What is stored then, or would be. */
  apply(server: McpServer, conditions: Conditions): Promise<{ stored: StoredMcpServer; hasChanged: boolean }>;
  /** False when there is none of that name. */
  remove(name: string, conditions: Omit<Conditions, "validateOnly">): Promise<boolean>;
}

/** On what a change depends. */
interface Conditions {
  /** The revision that must stand, 0 for none; absent: whatever stands. */
  expectedRevision?: bigint | undefined;
  /** All is checked, and nothing stored. */
  validateOnly: boolean;
  signal: AbortSignal;
}

/** What a source means: what it describes, or the server that was applied under its name. */
export function serverOfSource(
  source: Pick<Source, "name" | "config" | "fromRun">,
  applied: AppliedServers,
  runServers: RunServers,
): McpServer {
  if (source.fromRun) return serverOfRun(parseServer(source.name, source.config ?? {}), runServers);
  if (source.config && Object.keys(source.config).length > 0) return parseServer(source.name, source.config);
  return (
    applied.find(source.name) ??
    refuse(
      "not_found",
      `there is no MCP server ${source.name}: its source says neither url nor command, and none was applied`,
      {
        reason: "MCP_SERVER_NOT_FOUND",
      },
    )
  );
}

/** The sources that an agent without any of its own has: the servers that were applied. */
export function sourcesOf(applied: Pick<AppliedServers, "list">): Source[] {
  return applied.list().flatMap(({ server }) => (server ? [sourceOfServer(server)] : []));
}

/** What a run brings is nothing that an operator has seen. */
function serverOfRun(server: McpServer, runServers: RunServers): McpServer {
  const shared = server.share === Share.UNSPECIFIED ? [] : [{ field: "share", message: "is shared with nobody" }];
  const fieldViolations = [...faultsOfRunServer(runServers, server), ...shared];
  const [fault] = fieldViolations;
  if (fault === undefined) return server;
  return refuse("permission_denied", `the MCP server ${server.name} ${fault.message}`, {
    reason: "INVALID_REQUEST",
    fieldViolations,
  });
}

export function sourceOfServer(server: McpServer, fromRun = false): Source {
  const config = toJson(McpServerSchema, server);
  return { $typeName: "toolbus.tool.v1.Source", fromRun, name: server.name, config: isObject(config) ? config : {} };
}
