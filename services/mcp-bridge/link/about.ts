import type { Client } from "@modelcontextprotocol/client";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { SourceStatus } from "#gen/toolbus/tool/v1/source_pb.ts";
import { shortened } from "#runtime/content/shortened.ts";
import { iconsFrom } from "../tools/icons.ts";

/** What a server says of itself. */
export type About = Pick<SourceStatus, "instructions" | "title" | "icons" | "toolsTtl">;

export const NOTHING_KNOWN: About = { instructions: "", title: "", icons: [] };

const MAX_INSTRUCTIONS = 8_192;
const MAX_TITLE = 256;

export function aboutServer(client: Client, { omitInstructions }: McpServer): About {
  const info = client.getServerVersion();
  const instructions = omitInstructions ? "" : (client.getInstructions() ?? "").trim();
  return {
    instructions: shortened(instructions, MAX_INSTRUCTIONS),
    title: shortened(info?.title ?? "", MAX_TITLE),
    icons: iconsFrom(info?.icons),
  };
}
