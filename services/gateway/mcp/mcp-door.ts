/*
 * An agent's tools for any MCP client (DOOR-1):
 *
 *   /mcp/<agent>     and /mcp, for a key that may use one agent only
 *   …?search=1       four tools that find and call the agent's, in place of all
 *   /mcp/~suite      runs, tools, servers and the audit trail, for those who look after them; no agent's name has a ~
 *   /mcp/~sessions   conversations with agents, for programs that lend them tools (CTR-11)
 *   POST             messages of 2024-11-05 … 2025-11-25, and requests of 2026-07-28
 *   GET, DELETE      the stream of a session, and its end, up to 2025-11-25
 *   /.well-known/oauth-protected-resource…    where tokens are to be had (RFC 9728)
 *
 * It translates, and keeps nothing:
 *
 * mcp-1  A session of a client is a session of the suite, with its id, of the principal that opened it. A request of 2026-07-28
 *        is of the session that its principal has with the agent. So every gateway serves every request.
 * mcp-2  A call's id follows from its session and the id of its JSON-RPC request, by a key of the gateways: sent again, resumed or
 *        canceled at any gateway, it is that call, and not executed twice; nobody else can compute it.
 * mcp-3  Up to 2025-11-25, a client that leaves has canceled nothing. It goes on by `Last-Event-ID`, which says what it asked for.
 *        What a client asked for as a task is found by the call's id (tasks/serve-tasks.ts).
 * mcp-4  All is asked for as the client's principal: rules, policies, shares and audit are those of the services.
 */

import { isLegacyRequest } from "@modelcontextprotocol/server";
import { refuse } from "#runtime/failure/failure.ts";
import { shutdownOf, signalOf } from "#runtime/rpc/http/connect/reply.ts";
import { sinkOf } from "#runtime/rpc/http/messages.ts";
import { endWhenSilent } from "#runtime/rpc/http/sockets/liveness.ts";
import { fieldsOf } from "#runtime/schema/json-object.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Enter } from "../access/admission.ts";
import { requireOrigin } from "../access/cross-origin.ts";
import type { Door } from "../plain/door.ts";
import { type Exchange, jsonFromText, optionsFor, readText } from "../plain/exchange.ts";
import { noteFault } from "../plain/observed-doors.ts";
import { SESSIONS, serveCallers } from "./callers/caller-server.ts";
import { JSON_RPC, type OnFault, refusalResponse, stopped, tellFault } from "./http/refusals.ts";
import type { ResourceMetadata } from "./http/resource-metadata.ts";
import { answerWeb, webRequestOf } from "./http/web-messages.ts";
import type { McpExchange, McpParts } from "./revisions/mcp-exchange.ts";
import { postToSession } from "./revisions/session-requests.ts";
import { endSession, openStream } from "./revisions/session-streams.ts";
import { namesRevision } from "./revisions/stateless/named-revision.ts";
import { serveStateless } from "./revisions/stateless/stateless-requests.ts";
import { SUITE, type SuiteParts, serveSuite } from "./suite/suite-server.ts";

export interface McpDoorOptions extends McpParts, SuiteParts {
  readonly enter: Enter;
  readonly metadata: ResourceMetadata;
}

export function createMcpDoor(options: McpDoorOptions): Door {
  return {
    routes: ["/mcp", `/mcp/${SUITE}`, `/mcp/${SESSIONS}`, "/mcp/{agent}"],
    takes(request, response, body) {
      const path = (request.url ?? "/").split("?", 1)[0] ?? "";
      const [isOurs, agent = ""] = /^\/mcp(?:\/(~suite|~sessions|[a-zA-Z0-9_-]{1,64}))?\/?$/.exec(path) ?? [];
      if (isOurs === undefined) return options.metadata.paths(request, response, body);
      answer(options, { request, response, body, signal: signalOf(response) }, agent).catch(() => response.destroy());
      return true;
    },
  };
}

interface Given extends Exchange {
  /** Aborts when the client has left, or this process waits no longer. */
  readonly signal: AbortSignal;
}

async function answer(door: McpDoorOptions, given: Given, agent: string): Promise<void> {
  const { request, response, signal } = given;
  const onFault: OnFault = (error, code) => {
    noteFault(response, code);
    if (code === "internal") door.onFault(error, code); // of which its client is told no more than that
  };
  const options = { ...door, onFault };
  const { promise: begun, resolve: onBegun } = Promise.withResolvers<boolean>();
  const shutdown = shutdownOf(response);
  let id: string | number | null = null;
  let goesOn = false;
  const refusal = (error: unknown) =>
    refusalResponse(shutdown?.aborted ? stopped(goesOn) : error, id, options.metadata.challenge);
  const lastWord = async () => (shutdown?.aborted && id !== null ? refusal(undefined).text() : undefined);
  const answered = async () => {
    requireOrigin(given);
    const caller = await options.enter(request, response, "streams");
    const bodyText = isJson(given) ? await readText(given, options.maxBytes) : "";
    const body = bodyText === "" ? undefined : parse(bodyText);
    const { id: own } = fieldsOf(body);
    if (typeof own === "string" || typeof own === "number") id = own;
    goesOn = agent !== SUITE && agent !== SESSIONS && !namesRevision(body); // mcp-3
    if (!METHODS.has(request.method ?? "")) return notAllowed();
    const head = webRequestOf(request, given.signal);
    if (agent === SESSIONS) sinkOf(response).once("close", endWhenSilent(request)); // CTR-7
    const named = agent || (await soleAgent(options, caller));
    return route(options, { caller, request: head, agent: named, body, bodyText, begun });
  };
  const web = await unlessAborted(answered(), shutdown).catch((error: unknown) => {
    tellFault(error, onFault);
    return refusal(error);
  });
  await answerWeb(response, web, { signal, onBegun, lastWord });
}

async function route(parts: McpParts & SuiteParts, exchange: McpExchange): Promise<Response> {
  const { request, body } = exchange;
  if (exchange.agent === SUITE) return serveSuite(parts, exchange);
  if (exchange.agent === SESSIONS) return serveCallers(parts, exchange);
  if (request.method === "GET") return openStream(parts, exchange);
  if (request.method === "DELETE") return endSession(parts, exchange);
  const isOld = !namesRevision(body) && (await isLegacyRequest(request, body ?? {}));
  return isOld ? postToSession(parts, exchange) : serveStateless(parts, exchange);
}

const METHODS: ReadonlySet<string> = new Set(["GET", "POST", "DELETE"]);

function notAllowed(): Response {
  const message = "Method not allowed: POST a message, GET a stream or DELETE a session";
  const error = { code: JSON_RPC.refused, message };
  return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 405, headers: { allow: "GET, POST, DELETE" } });
}

function isJson({ request }: Exchange): boolean {
  return request.method === "POST" && /^application\/json\b/i.test(request.headers["content-type"] ?? "");
}

/** Each message of a batch may ask the services for something. */
const MAX_BATCH = 100;

function parse(text: string): unknown {
  const body = jsonFromText(text);
  if (Array.isArray(body) && body.length > MAX_BATCH)
    refuse("invalid_argument", `the body holds more than ${MAX_BATCH} messages`, { reason: "INVALID_REQUEST" });
  for (const message of Array.isArray(body) ? body : [body]) {
    const params = fieldsOf(fieldsOf(message).params); // null is how Go's libraries write an empty map, and the SDK takes none
    for (const name of Object.keys(params)) if (params[name] === null) delete params[name];
    requireShortEchoes(message);
  }
  return body;
}

/** Each event of a call has these again, and its client brings them back in a header. */
const MAX_ECHO = 1_024;

function requireShortEchoes(message: unknown): void {
  const { id, params } = fieldsOf(message);
  const { progressToken } = fieldsOf(fieldsOf(params)._meta);
  const echoes = { "the id of a message": id, "params._meta.progressToken": progressToken };
  for (const [what, value] of Object.entries(echoes))
    if (typeof value === "string" && value.length > MAX_ECHO)
      refuse("invalid_argument", `${what} has at most ${MAX_ECHO} characters`, { reason: "INVALID_REQUEST" });
}

async function soleAgent({ agents }: McpParts, caller: McpExchange["caller"]): Promise<string> {
  const page = await agents.listAgents({ pageSize: 20, onlyGranted: true }, optionsFor(caller));
  const names = page.agents.map(({ agent }) => agent?.name ?? "");
  if (names.length === 1 && names[0] && page.nextPageToken === "") return names[0]; // a page may hold one large agent of many
  const text = `name the agent: /mcp/<agent>${names.length > 0 ? `, one of ${names.join(", ")}` : ""}`;
  return refuse("not_found", text, { reason: "AGENT_NOT_FOUND" });
}
