import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { type McpServer, McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { agentSpelling } from "./agent-spelling.ts";
import { faultOfTransport, type TransportFault } from "./server-spelling.ts";
import { contractJson } from "./spelling.ts";

/** The MCP server that a source's configuration describes, or the fault of its transport. Throws what `fromJson` throws. */
export function serverFromConfig(config: JsonObject): { server: McpServer } | { fault: TransportFault } {
  const json = contractJson(McpServerSchema, config, agentSpelling);
  const { stdio: _stdio, http: _http, custom: _custom, ...rest } = json;
  fromJson(McpServerSchema, rest); // what is unknown is named before what is missing for it
  const fault = faultOfTransport(json);
  return fault === undefined ? { server: fromJson(McpServerSchema, json) } : { fault };
}
