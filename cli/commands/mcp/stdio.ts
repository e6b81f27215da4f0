import { once } from "node:events";
import { PassThrough } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { Command } from "commander";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { readLines } from "#runtime/lifecycle/child-process/lines.ts";
import { comesWithin } from "#runtime/time/comes-within.ts";
import { type GlobalOptions, globalOptionsOf, openConnection } from "../../connection.ts";
import { printNote } from "../../printing/terminal.ts";
import { openInterruption } from "../../requests/interruption.ts";
import { type Bridge, connect } from "./bridge.ts";

/** As often as a call outlives its stream, within the minutes that a gateway may take to come back. */
const reconnectionOptions = {
  initialReconnectionDelay: 200,
  maxReconnectionDelay: 5_000,
  reconnectionDelayGrowFactor: 1.5,
  maxRetries: 30,
};

/** For so long after its client has closed stdin, what it had asked is answered (bridge-4). */
const ANSWERED_MS = 60_000;

/** Nobody waits longer for a word on the agent's name. */
const CHECK_MS = 5_000;

/** Is the agent's MCP server on stdin and stdout, until the client closes stdin. Throws `not_found` for an agent that is not there. */
export async function serveStdio(agent: string, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const { url, apiKey } = global;
  using interruption = openInterruption();
  const near = new StdioServerTransport(new PassThrough()); // writes: it would close both ways with stdin, and at 10 MiB
  const far = new StreamableHTTPClientTransport(new URL(`/mcp/${encodeURIComponent(agent)}`, url), {
    requestInit: { headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` } },
    reconnectionOptions,
  });
  near.onerror = ({ message }) => printNote(message);
  const bridge = connect(near, far);
  await far.start();
  await near.start();
  const left = once(interruption.signal, "abort");
  const closed = takeLines(bridge);
  const checked = missingAgent(agent, global);
  // A client is told by the answer to its first request; a person at a terminal makes none.
  const isLeft = checked.then((fault) => (fault && process.stdin.isTTY ? fault : new Promise(() => {})));
  try {
    await Promise.race([closed.then(() => comesWithin(ANSWERED_MS, bridge.idle())), left, isLeft]);
  } finally {
    if (far.sessionId !== undefined) await far.terminateSession().catch(() => {}); // it goes unused otherwise
    await far.close();
    await near.close();
  }
  const fault = await checked;
  if (fault !== undefined) throw fault;
}

async function takeLines(bridge: Bridge): Promise<void> {
  try {
    for await (const line of readLines(process.stdin)) bridge.take(line);
  } catch (error) {
    await bridge.giveUp(messageFromUnknown(error)); // a line that is too long: nothing behind it is read
    throw error;
  }
}

/** The gateway's word that there is no such agent. One that is away, or says anything else, is asked again by the client's requests. */
async function missingAgent(agent: string, global: GlobalOptions): Promise<ConnectError | undefined> {
  if (agent.startsWith("~")) return undefined; // the suite's own: see mcp-door.ts
  try {
    await openConnection(global).client(AgentService).getAgent({ name: agent }, { timeoutMs: CHECK_MS });
    return undefined;
  } catch (error) {
    return error instanceof ConnectError && error.code === Code.NotFound ? error : undefined;
  }
}
