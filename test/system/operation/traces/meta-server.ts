// An MCP server whose tool says where in the trace it was called.

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";

const server = new McpServer({ name: "meta", version: "1.0.0" });
server.registerTool("place", { description: "Gives the traceparent of the call" }, ({ _meta }) => ({
  content: [{ type: "text", text: String(_meta?.traceparent) }],
}));
server.registerTool("fail", { description: "Fails" }, () => ({ content: [], isError: true }));
await server.connect(new StdioServerTransport());
