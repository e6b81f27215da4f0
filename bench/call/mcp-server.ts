/** An MCP server that does nothing that takes time: what a call of it costs is what is around it. */
import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { MCP_SERVER, MCP_TOOL, PROCESS_TOOL } from "./setting.ts";

serveStdio(() => {
  const server = new McpServer({ name: MCP_SERVER, version: "1" });
  const inputSchema = fromJsonSchema<{ text: string }>({
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
  });
  const annotations = { readOnlyHint: true };
  server.registerTool(MCP_TOOL, { inputSchema, annotations }, ({ text }) => ({ content: [{ type: "text", text }] }));
  server.registerTool(PROCESS_TOOL, { annotations }, () => ({ content: [{ type: "text", text: `${process.pid}` }] }));
  return server;
});
