// An MCP server over stdio with a pure tool and one that may happen once, which happen at the URL that is its argument.

import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const [, , url = ""] = process.argv;
const inputSchema = fromJsonSchema<{ key: string }>({ type: "object", properties: { key: { type: "string" } } });

serveStdio(() => {
  const server = new McpServer({ name: "effects", version: "1" }, { capabilities: { tools: {} } });
  for (const name of ["mcp_pure", "mcp_at_most_once"]) {
    const annotations = { readOnlyHint: name === "mcp_pure" };
    server.registerTool(name, { inputSchema, annotations }, async ({ key }) => {
      const response = await fetch(url, { method: "POST", body: JSON.stringify({ key }) });
      return { content: [{ type: "text", text: await response.text() }] };
    });
  }
  return server;
});
