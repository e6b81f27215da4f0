/** An MCP server whose only tool takes its time. */
import { setTimeout } from "node:timers/promises";
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { SLOW_MS, SLOW_TEXT, SLOW_TOOL } from "./setting.ts";

serveStdio(() => {
  const server = new McpServer({ name: SLOW_TOOL, version: "1" });
  server.registerTool(SLOW_TOOL, { annotations: { readOnlyHint: true } }, async () => {
    await setTimeout(SLOW_MS);
    return { content: [{ type: "text", text: SLOW_TEXT }] };
  });
  return server;
});
