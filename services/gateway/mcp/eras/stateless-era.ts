import { randomUUID } from "node:crypto";
import { createMcpHandler, type ServerEventBus } from "@modelcontextprotocol/server";
import { isObject } from "#runtime/schema/json-object.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { createAgentServer } from "../agent/agent-server.ts";
import { followTools } from "../agent/tool-changes.ts";
import { instructionsFrom, readTools, scopeOfSession } from "../agent/tool-list.ts";
import { type McpExchange, type McpParts, optionsFor } from "./exchange.ts";
import { writtenArguments } from "./written-arguments.ts";

/** Answers a request of 2026-07-28: each says all that there is to know of its client, and who leaves has canceled. */
export async function serveStateless(parts: McpParts, exchange: McpExchange): Promise<Response> {
  const { agent, caller, request, body, bodyText } = exchange;
  const { tools, sessions, takeCall } = parts;
  const options = optionsFor(caller);
  const instructions = async () => instructionsFrom(await readTools(tools, { case: "agent", value: agent }, options));
  const said = isObject(body) && body.method === "server/discover" ? { instructions: await instructions() } : {};
  const server = () =>
    createAgentServer({
      ...said,
      ...{ tools, options, takeCall: () => takeCall(caller), argumentsJsonOf: writtenArguments(bodyText) },
      sessionId: () => sessions.standing(agent, caller),
      callIdOf: callIds(),
    });
  const bus = changesOfTools(parts, exchange, () => void handler.close());
  const handler = createMcpHandler(server, { legacy: "reject", bus });
  return handler.fetch(request, { parsedBody: body });
}

/** No id of the client's is one for longer than its request. */
function callIds(): () => string {
  const id = randomUUID();
  return () => id;
}

/** For the one stream that a request may open, which ends when this process stops. */
function changesOfTools(parts: McpParts, { agent, caller, request }: McpExchange, end: () => void): ServerEventBus {
  const { tools, sessions, stopping } = parts;
  async function follow(listener: Parameters<ServerEventBus["subscribe"]>[0], left: AbortSignal): Promise<void> {
    using ending = openEnding(left, request.signal, stopping);
    const scope = scopeOfSession(await sessions.standing(agent, caller));
    let isFirst = true;
    for await (const _ of followTools({ tools, scope, options: optionsFor(caller), signal: ending.signal })) {
      if (!isFirst) listener({ kind: "tools_list_changed" });
      isFirst = false;
    }
  }
  return {
    publish() {},
    subscribe(listener) {
      const left = new AbortController();
      follow(listener, left.signal).then(end, end); // a client that comes back is told why, if it cannot
      return () => left.abort();
    },
  };
}
