import { type RequestId, WebStandardStreamableHTTPServerTransport as Transport } from "@modelcontextprotocol/server";
import { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { optionsFor } from "../../plain/exchange.ts";
import { createAgentServer } from "../agent/agent-server.ts";
import { followResources } from "../agent/resources/resource-changes.ts";
import { createStoredResults, recordedArguments } from "../agent/stored-results.ts";
import { followTools } from "../agent/tool-changes.ts";
import { scopeOfSession } from "../agent/tool-list.ts";
import { rpcFailureFrom } from "../http/refusals.ts";
import { isEventStream } from "../http/web-messages.ts";
import { eventIdOfTools, type PlacedCall, placeFromEventId } from "./ids/event-ids.ts";
import type { McpExchange, McpParts } from "./mcp-exchange.ts";
import { callIdIn, partsOfSession, postToSession, requireSession } from "./session-requests.ts";

/** Answers a GET of 2024-11-05 … 2025-11-25: the stream of a session, or that of a call whose client has lost it (mcp-3). */
export async function openStream(parts: McpParts, exchange: McpExchange): Promise<Response> {
  const { sessionId } = await requireSession(parts, exchange);
  const lastEventId = exchange.request.headers.get("last-event-id");
  const place = lastEventId === null ? undefined : placeFromEventId(lastEventId);
  if (place?.kind === "call") return resumeCall(parts, exchange, { sessionId, call: place.call });
  if (lastEventId !== null && place === undefined)
    refuse("invalid_argument", "Last-Event-ID is of no stream of this server", { reason: "INVALID_REQUEST" });
  return followSession(parts, exchange, { sessionId, digest: place?.digest });
}

export async function endSession(parts: McpParts, exchange: McpExchange): Promise<Response> {
  const { sessionId } = await requireSession(parts, exchange);
  await parts.sessions.close(sessionId, exchange.caller);
  return new Response(null, { status: 204 });
}

/** The same request again, which joins the call or gets its result. */
async function resumeCall(
  parts: McpParts,
  exchange: McpExchange,
  { sessionId, call }: { sessionId: string; call: PlacedCall },
): Promise<Response> {
  const { id, name, progressToken } = call;
  const callId = callIdIn(parts, exchange, { sessionId, id });
  if (call.callId !== undefined && call.callId !== callId) return refusalOn(id, FOREIGN);
  const argumentsJson = call.argumentsJson ?? (await argumentsOf(parts, exchange, callId));
  if (argumentsJson === undefined) return refusalOn(id, NOT_KEPT);
  const meta = progressToken === undefined ? "" : `"_meta":${JSON.stringify({ progressToken })},`;
  const task = call.task ? `"task":${JSON.stringify(call.task)},` : "";
  const params = `{${meta}${task}"name":${JSON.stringify(name)},"arguments":${argumentsJson || "{}"}}`;
  const bodyText = `{"jsonrpc":"2.0","id":${JSON.stringify(id satisfies RequestId)},"method":"tools/call","params":${params}}`;
  const headers = new Headers(exchange.request.headers);
  headers.delete("last-event-id");
  headers.set("content-type", "application/json");
  headers.set("accept", "application/json, text/event-stream");
  const { url, signal } = exchange.request;
  const request = new Request(url, { method: "POST", headers, signal });
  return postToSession(parts, { ...exchange, request, body: JSON.parse(bodyText), bodyText, isResumed: true });
}

/** Of a call whose arguments are too long for the place of its stream; undefined where nobody has kept them. */
async function argumentsOf(
  { calls, maxBytes }: McpParts,
  { caller }: McpExchange,
  callId: string,
): Promise<string | undefined> {
  const options = optionsFor(caller);
  try {
    const { call } = await calls.getToolCall({ callId }, options);
    return call && (await recordedArguments(call, createStoredResults(calls, options, maxBytes)));
  } catch (error) {
    if (failureFromConnectError(error).code === "not_found") return undefined; // a call that may be repeated has no record
    throw error;
  }
}

const NOT_KEPT = new Failure(
  "unavailable",
  "the stream of the call was lost, and its arguments are not kept: send it again, with the id that it had",
  { reason: "OUTCOME_UNKNOWN" },
);
const FOREIGN = new Failure("invalid_argument", "the call is of another session: its stream goes on there alone", {
  reason: "INVALID_REQUEST",
});

/** For a client that waits for the answer to its request: whoever is refused the stream goes on waiting. */
function refusalOn(id: RequestId, refused: Failure): Response {
  const answer = { jsonrpc: "2.0", id, error: rpcFailureFrom(refused) };
  const headers = { "content-type": "text/event-stream", "cache-control": "no-cache" };
  return new Response(`event: message\ndata: ${JSON.stringify(answer)}\n\n`, { headers });
}

async function followSession(
  parts: McpParts,
  exchange: McpExchange,
  { sessionId, digest }: { sessionId: string; digest: string | undefined },
): Promise<Response> {
  const { tools, stopping } = parts;
  const options = optionsFor(exchange.caller);
  const ending = openEnding(exchange.request.signal, stopping);
  const lists = followTools({ tools, scope: scopeOfSession(sessionId), options, signal: ending.signal });
  const first = await lists.next();
  let known = first.value ?? "";
  const eventStore = { storeEvent: async () => eventIdOfTools(known), replayEventsAfter: async () => "" };
  const transport = new Transport({ eventStore });
  const server = createAgentServer({
    ...partsOfSession(parts, exchange, sessionId),
    argumentsJsonOf: (call) => JSON.stringify(call.arguments),
    knowsLinks: false,
    logs: { from: LogLevel.UNSPECIFIED }, // of no call
  });
  await server.connect(transport);
  const response = await transport.handleRequest(withoutPlace(exchange.request));
  if (!isEventStream(response)) ending.end();
  const { content } = parts;
  void followResources({
    sources: { content, options, sessionId: async () => sessionId },
    resources: [],
    isResumed: digest !== undefined,
    signal: ending.signal,
    onUpdated: (uri) => server.sendResourceUpdated({ uri }),
  });
  const follow = async () => {
    if (digest !== undefined && digest !== known) await server.sendToolListChanged();
    for await (const list of lists) {
      known = list;
      await server.sendToolListChanged();
    }
  };
  void follow()
    .catch(() => {}) // the client opens it again, and is told why it cannot
    .finally(() => {
      ending.end();
      return server.close();
    });
  return response;
}

function withoutPlace({ url, headers, signal }: Request): Request {
  const kept = new Headers(headers);
  kept.delete("last-event-id");
  return new Request(url, { method: "GET", headers: kept, signal });
}
