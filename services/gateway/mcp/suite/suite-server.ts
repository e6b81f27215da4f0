import type { CallToolResult } from "@modelcontextprotocol/server";
import { shortened } from "#runtime/content/shortened.ts";
import { MAX_TEXT, textBlock } from "../agent/result-blocks.ts";
import { type OwnTool, serveOwn } from "../own/own-server.ts";
import type { McpExchange, McpParts } from "../revisions/mcp-exchange.ts";
import { type Asked, SUITE_TOOLS } from "./suite-tools.ts";

/** Stands where an agent's name does. No agent is called so. */
export const SUITE = "~suite";

export type SuiteParts = Pick<Asked, "transportOf" | "health">;

const instructions =
  "What the runs, sessions, agents, tools and servers of toolbus do, for those who look after them. To find out what went wrong: " +
  "list_runs, then replay_run; explain_tool says why an agent can or cannot call a tool, list_audit_events what was decided, " +
  "list_connections how MCP servers are, check_health which services answer. fork_run goes on from any step of a run.";

/** The suite itself as an MCP server: everybody sees by it what it may see by RPC. */
export function serveSuite(parts: McpParts & SuiteParts, exchange: McpExchange): Promise<Response> {
  const { transportOf, health } = parts;
  const tools = SUITE_TOOLS.map(
    ({ listed, run }): OwnTool => ({
      listed,
      run: async ({ options }, given) => resultFrom(await run({ transportOf, health, options }, given)),
    }),
  );
  return serveOwn(parts, exchange, { tools, instructions });
}

function resultFrom(value: unknown): CallToolResult {
  const text = JSON.stringify(value);
  if (text.length <= MAX_TEXT) return { content: [textBlock(text)] };
  const rest = "This is the beginning. Ask for less: a smaller pageSize, fewer updates, or shorter texts.";
  return { content: [textBlock(shortened(text, MAX_TEXT)), textBlock(rest)] };
}
