import { once } from "node:events";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { type Command, Option } from "commander";
import { createValidator } from "#runtime/schema/json-schema/validator.ts";
import { printNote } from "../../printing/terminal.ts";
import { openInterruption } from "../../requests/interruption.ts";
import { callerMcpServer } from "./socket/mcp-server.ts";
import { openSocketClient } from "./socket/socket-client.ts";

export function addAgentClientCommand(program: Command): void {
  program
    .command("agent-client")
    .description("Be an MCP server on stdin and stdout, with the tools of a caller-socket")
    .addOption(
      new Option("-s, --socket <path>", "where `caller-socket` listens").env("TOOLBUS_SOCKET").makeOptionMandatory(),
    )
    .action(serveAgent);
}

/** It serves at once: a socket that is not there yet is waited for meanwhile. */
async function serveAgent({ socket: path }: { socket: string }): Promise<void> {
  using interruption = openInterruption();
  const validator = createValidator();
  const servers = new Set<ReturnType<typeof callerMcpServer>>();
  await using client = openSocketClient({
    path,
    onConfig: () => {
      for (const server of servers) void server.sendToolListChanged().catch(() => {}); // not initialized: it lists later
    },
    onAway: (why) => printNote(`the socket ${path} is waited for: ${why}`),
  });
  const serving = serveStdio(() => {
    const server = callerMcpServer(client, validator);
    servers.add(server);
    return server;
  });
  await Promise.race([once(process.stdin, "close"), once(interruption.signal, "abort")]);
  await serving.close();
}
