import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";

/** What transports of MCP servers have, empty where one has no such field. */
export interface TransportParts {
  /** Empty for the one that the URL suggests. */
  readonly name: string;
  readonly url: string;
  readonly command: string;
  readonly env: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
}

const none: TransportParts = { name: "", url: "", command: "", env: {}, headers: {} };

export function partsOfTransport({ transport }: Pick<McpServer, "transport">): TransportParts {
  switch (transport.case) {
    case "stdio":
      return { ...none, name: "stdio", command: transport.value.command, env: transport.value.env };
    case "http":
      return { ...none, name: "http", url: transport.value.url, headers: transport.value.headers };
    case "custom":
      return { ...none, name: transport.value.name, url: transport.value.url, headers: transport.value.headers };
    default:
      return none;
  }
}
