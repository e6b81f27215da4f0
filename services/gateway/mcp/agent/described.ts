import type { Icon as McpIcon } from "@modelcontextprotocol/server";
import type { Icon } from "#gen/toolbus/tool/v1/source_pb.ts";
import { filled } from "#runtime/schema/json-object.ts";

/** What all lists of MCP say of their elements, without what is empty. */
export function describedFrom(given: {
  title: string;
  description: string;
  icons: readonly Icon[];
  mimeType?: string;
}) {
  const { title, description, mimeType, icons } = given;
  return filled({ title, description, mimeType, icons: icons.map(iconFrom) });
}

export function iconFrom({ src, mimeType, sizes, theme }: Icon): McpIcon {
  const known = theme === "light" || theme === "dark" ? theme : undefined;
  return { src, ...filled({ mimeType, sizes: [...sizes], theme: known }) };
}
