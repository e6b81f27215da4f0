import { once } from "node:events";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { Command } from "commander";
import { globalOptionsOf } from "../../connection.ts";
import { printNote } from "../../printing/terminal.ts";
import { openInterruption } from "../../requests/interruption.ts";
import { connect } from "./bridge.ts";

/** As often as a call outlives its stream, within the minutes that a gateway may take to come back. */
const reconnectionOptions = {
  initialReconnectionDelay: 200,
  maxReconnectionDelay: 5_000,
  reconnectionDelayGrowFactor: 1.5,
  maxRetries: 30,
};

/** Is the agent's MCP server on stdin and stdout, until the client closes stdin. */
export async function serveStdio(agent: string, command: Command): Promise<void> {
  const { url, apiKey } = globalOptionsOf(command);
  using interruption = openInterruption();
  const near = new StdioServerTransport();
  const far = new StreamableHTTPClientTransport(new URL(`/mcp/${encodeURIComponent(agent)}`, url), {
    requestInit: { headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` } },
    reconnectionOptions,
  });
  near.onerror = ({ message }) => printNote(message);
  connect(near, far);
  await far.start();
  await near.start();
  await Promise.race([once(process.stdin, "close"), once(process.stdin, "end"), once(interruption.signal, "abort")]);
  if (far.sessionId !== undefined) await far.terminateSession().catch(() => {}); // it goes unused otherwise
  await far.close();
  await near.close();
}
