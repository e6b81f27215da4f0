import type { ListRootsResult } from "@modelcontextprotocol/client";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";

/** What the server is told that it may work on. */
export function rootsOf({ roots }: Pick<McpServer, "roots">): ListRootsResult {
  return { roots: roots.map(({ uri, name }) => ({ uri, ...(name !== "" && { name }) })) };
}
