import { randomUUID } from "node:crypto";
import { CLIENT_CAPABILITIES_META_KEY, createMcpHandler } from "@modelcontextprotocol/server";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { principalOf } from "#runtime/rpc/identity.ts";
import { fieldsOf } from "#runtime/schema/json-object.ts";
import { optionsFor } from "../../../plain/exchange.ts";
import { createAgentServer } from "../../agent/agent-server.ts";
import { instructionsFrom, readTools } from "../../agent/tool-list.ts";
import type { CallInSession } from "../../calls/call.ts";
import { askInResults } from "../../calls/question-state.ts";
import { answersFrom } from "../../calls/questions.ts";
import { isEventStream } from "../../http/web-messages.ts";
import type { TasksOptions } from "../../tasks/task-calls.ts";
import {
  createDetailedTasks,
  createTaskAnswer,
  EXTENSION_CAPABILITY,
  knowsTasks,
  refuseUndeclared,
  serveTaskExtension,
} from "../../tasks/task-extension.ts";
import { type McpExchange, type McpParts, serverParts } from "../mcp-exchange.ts";
import { writtenArguments } from "../written-arguments.ts";
import { NO_CHANGES, openChanges, withResources } from "./listened-changes.ts";
import { listenedTasks, listeningAnyway, withTaskUpdates } from "./listened-tasks.ts";

/** Answers a request of 2026-07-28: each says all that there is to know of its client, and who leaves has canceled. */
export async function serveStateless(parts: McpParts, exchange: McpExchange): Promise<Response> {
  const { agent, caller, request, body, bodyText } = exchange;
  const { tools, sessions } = parts;
  const scope = { case: "agent", value: agent } as const;
  const instructions = async () => instructionsFrom(await readTools(tools, scope, optionsFor(caller)));
  const { method } = fieldsOf(body);
  const said = method === "server/discover" ? { instructions: await instructions() } : {};
  const callId = randomUUID(); // no id of the client's is one for longer than its request
  const own = () =>
    ({
      ...serverParts(parts, exchange, () => sessions.standing(agent, caller)),
      argumentsJsonOf: writtenArguments(bodyText),
      callIdOf: () => callId,
      callTool: callInStanding(parts, exchange),
      asking: askingOf(parts, exchange),
      knowsLinks: true,
      logs: "by request" as const,
    }) satisfies TasksOptions;
  const server = () => {
    const tasks = own();
    const isDeclared = knowsTasks(metaOf(exchange));
    const answerByTask = isDeclared ? createTaskAnswer(tasks) : undefined;
    const server = createAgentServer({ ...said, ...tasks, tasks: EXTENSION_CAPABILITY, answerByTask });
    serveTaskExtension(server, tasks, isDeclared);
    return server;
  };
  refuseForeignTasks(exchange);
  const isListening = method === "subscriptions/listen";
  const read = async (taskId: string) => {
    const { tasks, detailed } = createDetailedTasks(own());
    const call = await tasks.find(taskId);
    return call && detailed(call);
  };
  const taskIds = isListening ? await listenedTasks(paramsOf(exchange).notifications, read) : [];
  const changes = isListening ? await openChanges(parts, exchange, () => void handler.close()) : NO_CHANGES;
  const { bus, leave } = changes;
  // Proxies end, and some send again, what is silent: a call may be for long
  const isStreamed = method === "tools/call" && request.headers.get("accept")?.includes("text/event-stream") === true;
  const handler = createMcpHandler(server, { legacy: "reject", bus, responseMode: isStreamed ? "sse" : "auto" });
  const given = isListening ? withResources(body, changes.uris) : body;
  const { body: parsedBody, ...listening } = taskIds.length > 0 ? listeningAnyway(given) : { body: given };
  const response = await handler.fetch(request, { parsedBody });
  if (!isEventStream(response)) leave();
  if (!isEventStream(response) || taskIds.length === 0) return response;
  const signals = [request.signal, parts.stopping];
  return withTaskUpdates(response, { taskIds, read, signals, hidesTools: false, ...listening });
}

/** Tasks are told to who knows them. */
function refuseForeignTasks(exchange: McpExchange): void {
  const { taskIds } = fieldsOf(paramsOf(exchange).notifications);
  if (taskIds !== undefined && !knowsTasks(metaOf(exchange))) refuseUndeclared();
}

const paramsOf = ({ body }: McpExchange) => fieldsOf(fieldsOf(body).params);
const metaOf = (exchange: McpExchange) => fieldsOf(paramsOf(exchange)._meta);

/** What is asked of one principal's call of a tool is no state for anything else. */
function askingOf({ calls, stateKey }: McpParts, exchange: McpExchange) {
  const { agent, caller } = exchange;
  return askInResults({
    ...{ calls, stateKey, options: optionsFor(caller) },
    answers: answersFrom(metaOf(exchange)[CLIENT_CAPABILITIES_META_KEY]),
    boundTo: [principalOf(caller), agent, String(paramsOf(exchange).name)],
  });
}

/** Without asking for the session first: the router refuses where it is another one, and nothing is done yet. */
function callInStanding({ tools, sessions }: McpParts, { agent, caller }: McpExchange): CallInSession {
  return async function* callTool(call, options) {
    try {
      yield* tools.callTool({ ...call, agent, sessionId: sessions.believed(agent, caller) }, options);
    } catch (error) {
      if (!ELSEWHERE.includes(failureFromConnectError(error).reason)) throw error;
      yield* tools.callTool({ ...call, agent, sessionId: await sessions.standing(agent, caller) }, options);
    }
  };
}

/** The refusals of a session that is not there, or has ended, or has gone on to another agent, or is somebody else's. */
const ELSEWHERE = ["SESSION_NOT_FOUND", "SESSION_CLOSED", "AGENT_SWITCHED", "PRINCIPAL_NOT_OWNER"];
