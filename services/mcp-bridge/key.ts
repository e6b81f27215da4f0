import { createHash } from "node:crypto";
import { toBinary } from "@bufbuild/protobuf";
import { type McpServer, McpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { Scope } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";

/** Whom a connection belongs to: nobody in particular where a part is empty. */
export interface Holder {
  sessionId: string;
  agent: string;
}

/** `share` widens the holder: to all sessions of an agent, or to everybody. */
export function holderOf(server: McpServer, scope: Pick<Scope, "sessionId" | "agent"> | undefined): Holder {
  const { sessionId = "", agent = "" } = scope ?? {};
  if (server.share === "global") return { sessionId: "", agent: "" };
  if (server.share === "agent") return { sessionId: "", agent };
  return { sessionId, agent };
}

/** One connection a key. Secrets are not resolved in it. */
export function keyOf(server: McpServer, holder: Holder): string {
  const hash = createHash("sha256");
  hash.update(JSON.stringify([server.share, holder.sessionId, holder.agent]));
  hash.update(toBinary(McpServerSchema, withSortedMaps(server)));
  return hash.digest("base64url").slice(0, 32);
}

/** Maps have no order in protobuf, but their bytes do. */
function withSortedMaps(server: McpServer): McpServer {
  return { ...server, env: sorted(server.env), headers: sorted(server.headers) };
}

function sorted(map: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(map).sort(([left], [right]) => (left < right ? -1 : 1)));
}
