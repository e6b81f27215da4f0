import { create, type JsonObject, toJson } from "@bufbuild/protobuf";
import { McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { RunOptions } from "#gen/toolbus/run/v1/run_pb.ts";
import { type RunSource, RunSourceSchema } from "#gen/toolbus/tool/v1/source_pb.ts";
import { faultsOfRunServer, type RunServers } from "#runtime/config/run-servers.ts";
import type { FieldViolation } from "#runtime/failure/failure.ts";

/** Who has the connections of MCP servers. */
const provider = "mcp";

/** The MCP servers that a run brings, as its sources. */
export function runSourcesOf(options: RunOptions | undefined): RunSource[] {
  return (options?.mcpServers ?? []).map(({ $typeName, ...server }) => {
    const config = toJson(McpServerSchema, create(McpServerSchema, server)) as JsonObject;
    return create(RunSourceSchema, { name: server.name, provider, config });
  });
}

/** What is wrong with the servers that a run brings, as far as it can be said before they are asked. */
export function faultsOfRunServers(options: RunOptions | undefined, kind: RunServers): FieldViolation[] {
  const servers = options?.mcpServers ?? [];
  return servers.flatMap((server, index) => {
    const place = placeOfServer(index);
    const name = JSON.stringify(server.name);
    const faults = faultsOfRunServer(kind, server).map(({ field, message }) => ({
      field: field === "" ? place : `${place}.${server.transport.case}.${field}`,
      message: `the MCP server ${name} ${message}`,
    }));
    const isTwice = servers.findIndex((other) => other.name === server.name) !== index;
    const twice = { field: `${place}.name`, message: `two MCP servers of the run are called ${name}` };
    return isTwice ? [...faults, twice] : faults;
  });
}

export function placeOfServer(index: number): string {
  return `options.mcp_servers[${index}]`;
}

/** Whether a tool's name or reference means one of a server that the run brings, whose tools are known once it is asked. */
export function isOfRunServer(name: string, options: RunOptions | undefined): boolean {
  return (options?.mcpServers ?? []).some(
    (server) => name.startsWith(`@${server.name}/`) || name.startsWith(`${server.name}__`),
  );
}
