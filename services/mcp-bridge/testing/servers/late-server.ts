// A server of both eras over stdio, which reads nothing for as many milliseconds as its argument says: then it holds fast to the
// era of the first question.
import { setTimeout } from "node:timers/promises";
import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

await setTimeout(Number(process.argv[2]));
serveStdio(() => {
  const server = new McpServer({ name: "late", version: "1" }, { capabilities: { tools: {} } });
  const inputSchema = fromJsonSchema<{ text?: string }>({ type: "object" });
  server.registerTool("echo", { inputSchema }, async ({ text = "" }) => ({ content: [{ type: "text", text }] }));
  return server;
});
