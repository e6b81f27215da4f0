import {
  type EventStore,
  isInitializeRequest,
  type RequestId,
  WebStandardStreamableHTTPServerTransport as Transport,
} from "@modelcontextprotocol/server";
import { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { principalOf } from "#runtime/rpc/identity.ts";
import { fieldsOf, isObject } from "#runtime/schema/json-object.ts";
import { optionsFor } from "../../plain/exchange.ts";
import { type AgentServerOptions, type AskedCall, calledBy, createAgentServer } from "../agent/agent-server.ts";
import { instructionsFrom, readTools, scopeOfSession } from "../agent/tool-list.ts";
import { askOnStream } from "../calls/ask-on-stream.ts";
import { LEAST } from "../calls/log-levels.ts";
import { answer, answersFrom } from "../calls/questions.ts";
import { CREATE_TASK, serveTasks, TASKS_CAPABILITY } from "../tasks/serve-tasks.ts";
import type { TasksOptions } from "../tasks/task-calls.ts";
import { headerFromSession, type StandingSession, sessionFromHeader } from "./client-session.ts";
import { callIdOf } from "./ids/derived-ids.ts";
import { eventIdOfCall, type PlacedCall } from "./ids/event-ids.ts";
import { type McpExchange, type McpParts, serverParts } from "./mcp-exchange.ts";
import { writtenArguments } from "./written-arguments.ts";

/** Answers a POST of 2024-11-05 … 2025-11-25. */
export async function postToSession(parts: McpParts, exchange: McpExchange): Promise<Response> {
  const messages = messagesOf(exchange.body);
  if (messages.some((message) => isInitializeRequest(message))) return initialize(parts, exchange);
  const session = await requireSession(parts, exchange); // first: a client that has no answer yet cannot come back for its call
  const responses = messages.filter(isResponse);
  const failures = await Promise.all(
    responses.map(({ id, result }) => answer(parts.calls, { callId: id, result }, optionsFor(exchange.caller))),
  );
  const unfit = failures.find((failure) => failure?.code === "invalid_argument");
  if (unfit) throw unfit; // it may answer again
  if (responses.length > 0 && responses.length === messages.length) return new Response(null, { status: 202 });
  const canceled = messages.filter(({ method }) => method === "notifications/cancelled");
  await Promise.all(canceled.map((message) => cancel(parts, { exchange, ...session, message })));
  const [only] = messages;
  return serve(parts, exchange, { ...session, ...(messages.length === 1 && only && { only }) });
}

/** What the client answers to what it was asked, which has the id of the question. */
function isResponse(message: Message): message is Message & { id: string } {
  return message.method === undefined && typeof message.id === "string" && ("result" in message || "error" in message);
}

type Message = Record<string, unknown>;

function messagesOf(body: unknown): Message[] {
  return (Array.isArray(body) ? body : [body]).filter(isObject);
}

/** The session of the request's header, which is the caller's own. */
export async function requireSession(
  { sessions }: McpParts,
  { request, caller }: McpExchange,
): Promise<StandingSession> {
  const given = request.headers.get("mcp-session-id");
  if (given === null) {
    const text = "the header Mcp-Session-Id is missing: POST initialize first, over streamable HTTP, not HTTP+SSE";
    return refuse("invalid_argument", text, { reason: "INVALID_REQUEST" });
  }
  const session = sessionFromHeader(given);
  const { logLevel } = await sessions.require(session.sessionId, caller);
  return { ...session, logLevel };
}

async function initialize(parts: McpParts, exchange: McpExchange): Promise<Response> {
  const { agent, caller, body } = exchange;
  const params = messagesOf(body).find((message) => isInitializeRequest(message))?.params;
  const answers = answersFrom(params?.capabilities);
  const knowsLinks = String(params?.protocolVersion) >= "2025-06-18"; // some clients send no MCP-Protocol-Version later
  const { id: sessionId } = await parts.sessions.open(agent, caller);
  const list = await readTools(parts.tools, scopeOfSession(sessionId), optionsFor(caller));
  return serve(parts, exchange, {
    ...{ sessionId, answers, knowsLinks, logLevel: LogLevel.UNSPECIFIED },
    ...{ isNew: true, instructions: instructionsFrom(list) },
  });
}

/** What an agent's server needs of a session whose client names it. */
export function partsOfSession(parts: McpParts, exchange: McpExchange, sessionId: string) {
  return {
    ...serverParts(parts, exchange, async () => sessionId),
    callIdOf: ({ id }) => callIdIn(parts, exchange, { sessionId, id }),
    async *callTool(call, options) {
      // what is lost before is lost for the client, and must not have happened
      if (!(await exchange.begun))
        refuse("canceled", "the client left before its answer began", { reason: "CANCELED" });
      yield* parts.tools.callTool({ ...call, sessionId }, options);
    },
  } satisfies Partial<AgentServerOptions>;
}

interface Served extends StandingSession {
  readonly isNew?: boolean;
  readonly instructions?: string;
  /** The message, where there is one. */
  readonly only?: Message;
}

/** By a server and a transport for these messages alone: nothing is known of the session but its id. */
async function serve(parts: McpParts, exchange: McpExchange, served: Served): Promise<Response> {
  const { sessionId, isNew, instructions, only } = served;
  const { request, body, bodyText } = exchange;
  const own = {
    ...partsOfSession(parts, exchange, sessionId),
    argumentsJsonOf: writtenArguments(bodyText),
    asking: askOnStream(() => transport, { answers: served.answers, isResumed: exchange.isResumed ?? false }),
    knowsLinks: served.knowsLinks,
    logs: { from: served.logLevel },
  } satisfies TasksOptions;
  const server = createAgentServer({
    ...own,
    tasks: TASKS_CAPABILITY,
    ...(instructions !== undefined && { instructions }),
  });
  server.setRequestHandler("logging/setLevel", async ({ params: { level } }) => {
    await parts.sessions.setLogLevel(sessionId, LEAST[level], exchange.caller);
    return {};
  });
  serveTasks(server, own);
  const call = only && callFrom(only);
  const isStream = messagesOf(body).some(({ method }) => method === "tools/call" || method === "tasks/result");
  const transport = new Transport({
    ...(isNew && { sessionIdGenerator: () => headerFromSession(served) }),
    ...(call && { eventStore: placeOf({ ...call, ...calledBy(own, call), callId: own.callIdOf(call) }) }),
    enableJsonResponse: !isStream,
  });
  await server.connect(transport);
  return transport.handleRequest(request, { parsedBody: withTasks(body) });
}

function withTasks(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(withTasks);
  const { method, params } = fieldsOf(body);
  return isObject(body) && method === "tools/call" && isObject(fieldsOf(params).task)
    ? { ...body, method: CREATE_TASK }
    : body;
}

/** Whoever comes back with it asks for the same call (mcp-2). */
function placeOf(call: PlacedCall): EventStore {
  const replayEventsAfter = () => refuse("internal", "streams are resumed by their calls", { reason: "INTERNAL" });
  return { storeEvent: async () => eventIdOfCall(call), replayEventsAfter };
}

type CalledByMessage = AskedCall & Pick<PlacedCall, "progressToken" | "task">;

function callFrom({ id, method, params }: Message): CalledByMessage | undefined {
  if (method !== "tools/call" || !isObject(params) || !isId(id) || typeof params.name !== "string") return undefined;
  const { progressToken } = fieldsOf(params._meta);
  const place = {
    ...(isId(progressToken) && { progressToken }),
    ...(isObject(params.task) && { task: typeof params.task.ttl === "number" ? { ttl: params.task.ttl } : {} }),
  };
  return { id, name: params.name, arguments: fieldsOf(params.arguments), ...place };
}

function isId(value: unknown): value is RequestId {
  return typeof value === "string" || typeof value === "number";
}

/** The id of the caller's call in the session (mcp-2). */
export function callIdIn(
  { stateKey }: McpParts,
  { caller }: McpExchange,
  call: { readonly sessionId: string; readonly id: RequestId },
): string {
  return callIdOf(stateKey, { ...call, principal: principalOf(caller) });
}

interface Cancellation {
  readonly exchange: McpExchange;
  readonly sessionId: string;
  readonly message: Message;
}

/** Wherever the call is. One that has its result keeps it. */
async function cancel(parts: McpParts, { exchange, sessionId, message }: Cancellation): Promise<void> {
  const { requestId, reason } = fieldsOf(message.params);
  if (!isId(requestId)) return;
  const text = typeof reason === "string" ? reason.slice(0, 4_096) : "canceled by the MCP client";
  const callId = callIdIn(parts, exchange, { sessionId, id: requestId });
  await parts.calls.cancelToolCall({ callId, reason: text }, optionsFor(exchange.caller));
}
