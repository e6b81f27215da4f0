import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { refuse } from "#runtime/failure/failure.ts";

/** Throws `invalid_argument` for a server that has none. */
export function urlOfServer(server: McpServer): URL {
  const { url } = partsOfTransport(server);
  const fault = url === "" ? `the server ${server.name} is a program, and nobody logs in to it` : `${url} is no URL`;
  return URL.parse(url) ?? refuse("invalid_argument", fault, { reason: "INVALID_REQUEST" });
}
