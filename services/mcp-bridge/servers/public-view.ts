import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { StoredMcpServer } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { originOfUrl } from "#runtime/http/origin-of-url.ts";

/** What everybody sees of a server who is no operator: which program or host it is, and nothing that may hold a secret. */
export function publicServer({ server, ...stored }: StoredMcpServer): StoredMcpServer {
  if (server === undefined) return { ...stored, redacted: true };
  const { auth: _, ...shown } = server;
  return { ...stored, server: { ...shown, transport: publicTransport(server) }, redacted: true };
}

function publicTransport({ transport }: McpServer): McpServer["transport"] {
  switch (transport.case) {
    case "stdio":
      return { case: "stdio", value: { ...transport.value, args: [], env: {} } };
    case "http":
      return { case: "http", value: { ...transport.value, url: originOfUrl(transport.value.url), headers: {} } };
    case "custom":
      return { case: "custom", value: { ...transport.value, url: originOfUrl(transport.value.url), headers: {} } };
    case undefined:
      return transport;
  }
}
