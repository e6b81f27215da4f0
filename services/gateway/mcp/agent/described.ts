import type { Icon as McpIcon } from "@modelcontextprotocol/server";
import type { Icon } from "#gen/toolbus/tool/v1/source_pb.ts";

/** What all lists of MCP say of their elements, without what is empty. */
export function describedFrom(given: {
  title: string;
  description: string;
  icons: readonly Icon[];
  mimeType?: string;
}) {
  const { title, description, mimeType = "", icons } = given;
  return {
    ...(title !== "" && { title }),
    ...(description !== "" && { description }),
    ...(mimeType !== "" && { mimeType }),
    ...(icons.length > 0 && { icons: icons.map(iconFrom) }),
  };
}

export function iconFrom({ src, mimeType, sizes, theme }: Icon): McpIcon {
  return {
    src,
    ...(mimeType !== "" && { mimeType }),
    ...(sizes.length > 0 && { sizes: [...sizes] }),
    ...((theme === "light" || theme === "dark") && { theme }),
  };
}
