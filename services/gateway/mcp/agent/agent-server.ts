import type { CallOptions } from "@connectrpc/connect";
import type {
  CallToolResult,
  RequestId,
  Server,
  ServerCapabilities,
  ServerContext,
} from "@modelcontextprotocol/server";
import { VERSION } from "#runtime/config/version.ts";
import { mcpSpan, TOOL_ERROR } from "#runtime/telemetry/conventions.ts";
import type { InSpan, WorkSpan } from "#runtime/telemetry/in-span.ts";
import { traceFromFields } from "#runtime/telemetry/trace-context.ts";
import { type CallInSession, follow } from "../calls/call.ts";
import { type Logs, notifier } from "../calls/notifications.ts";
import { type Asking, followQuestions } from "../calls/questions.ts";
import { DoorServer } from "../http/door-server.ts";
import type { OnFault } from "../http/refusals.ts";
import { innerCall, SEARCH_INSTRUCTIONS, SEARCH_TOOLS, searched } from "../search/search-tools.ts";
import { indexOf } from "../search/tool-index.ts";
import { resultFrom } from "./call-result.ts";
import { servePrompts } from "./prompts.ts";
import { serveResources, serveSubscriptions } from "./resources/resources.ts";
import { type Content, createAgentSources, LIST_TTL_MS, ttlOfTools } from "./sources.ts";
import type { StoredCalls, StoredResults } from "./stored-results.ts";
import { readTools, scopeOfSession, type Tools, toolsFrom } from "./tool-list.ts";

export interface AskedCall {
  readonly id: RequestId;
  readonly name: string;
  readonly arguments: Record<string, unknown>;
}

export interface AgentServerOptions {
  readonly tools: Tools;
  readonly content: Content;
  readonly results: StoredResults;
  readonly calls: StoredCalls;
  /** How what a call asks of people is put to the client; it is not unless told. */
  readonly asking?: Asking | undefined;
  /** Whose tools, once somebody asks for them. */
  readonly sessionId: () => Promise<string>;
  /** On whose behalf all is asked for (mcp-4). */
  readonly options: CallOptions;
  readonly instructions?: string;
  /** The id of the call, which is the same whenever it is asked for again (mcp-2). */
  readonly callIdOf: (call: AskedCall) => string;
  readonly callTool: CallInSession;
  /** Its arguments as they were written, numbers and all. */
  readonly argumentsJsonOf: (call: AskedCall) => string;
  readonly onFault: OnFault;
  readonly inSpan: InSpan;
  /** Counts a call of the principal until it is given back. */
  readonly takeCall: () => () => void;
  /** Whether the client can read links to resources. */
  readonly knowsLinks: boolean;
  readonly logs: Logs;
  /** What the client is told of calls as tasks. */
  readonly tasks?: Pick<ServerCapabilities, "tasks" | "extensions">;
  /** Answers a new call by its result or a task; undefined for one that is answered as any. */
  readonly answerByTask?: ((asked: AskedCall) => Promise<CallToolResult | undefined>) | undefined;
  /** Whether the client finds tools by words, and is not listed them. */
  readonly searches: boolean;
}

const NOBODY_ASKED: Asking = { answers: { forms: false, urls: false }, ask: async () => undefined };
/** What clients are told of this server. */
export const INFO = { name: "toolbus", title: "toolbus", version: VERSION };
/** A list is an answer for one principal, and clients that listen are told when it is another. */
const CACHE = { ttlMs: LIST_TTL_MS, cacheScope: "private" } as const;
const CACHED = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"] as const;

/** One agent as an MCP server, for the messages of one request. */
export function createAgentServer(server: AgentServerOptions): Server {
  const { tools, sessionId, options, logs, searches, tasks, asking = NOBODY_ASKED } = server;
  const isStateless = logs === "by request";
  const instructions =
    searches && server.instructions ? `${server.instructions}\n\n${SEARCH_INSTRUCTIONS}` : server.instructions;
  const own = new DoorServer(server.onFault, INFO, {
    capabilities: {
      tools: { listChanged: true },
      resources: { subscribe: true },
      prompts: {},
      completions: {},
      logging: {},
      ...tasks,
    },
    ...(instructions !== undefined && { instructions }),
    ...(asking.verifyState && { requestState: { verify: asking.verifyState } }),
    cacheHints: Object.fromEntries(CACHED.map((method) => [method, CACHE])),
  });
  own.setRequestHandler("tools/list", async () => {
    if (searches) return { tools: [...SEARCH_TOOLS] };
    const all = await read();
    return { tools: toolsFrom(all), ...(isStateless && ttlOfTools(all)) };
  });
  own.setRequestHandler("tools/call", ({ params: { name, arguments: given = {} } }, context) => {
    const { id, _meta: meta } = context.mcpReq;
    const describe = () => mcpSpan({ side: "server", method: "tools/call", target: name, requestId: String(id) });
    const work = (span: WorkSpan) => callTool({ id, name, arguments: given }, context, span);
    return server.inSpan(describe, work, traceFromFields({ ...meta }));
  });
  const sources = createAgentSources({ ...server, options, tellsTtl: isStateless });
  serveResources(own, sources, server.results);
  if (!isStateless) serveSubscriptions(own, sources);
  servePrompts(own, sources);
  return own;

  async function callTool(asked: AskedCall, context: ServerContext, span: WorkSpan) {
    const { name } = asked;
    const found = searches ? await searched(name, asked.arguments, index) : undefined;
    if (found) return found;
    const goesOn = asking.goesOn?.(context);
    const byTask = goesOn === undefined ? await server.answerByTask?.(asked) : undefined;
    if (byTask) return byTask;
    const callId = goesOn ?? server.callIdOf(asked);
    const outcome = await follow(
      { ...server, answers: asking.answers },
      { ...calledBy(server, asked), callId },
      {
        signal: context.mcpReq.signal,
        notify: notifier(context.mcpReq, logs),
        ask: (questions) => asking.ask(questions, { callId, context }),
        asked: asking.isResumed || goesOn ? (signal) => askedAgain(callId, signal) : undefined,
      },
    );
    if (outcome.kind === "asked") return outcome.asked;
    if (outcome.answer.isError) span.fail(TOOL_ERROR);
    const hasSchema = async () => {
      if (searches) return false;
      const listed = await read().catch(() => undefined); // the call is over, and is told as it ended
      return listed === undefined || toolsFrom(listed).some((tool) => tool.name === name && tool.outputSchema);
    };
    return resultFrom(outcome.answer, { ...server, callId, hasSchema });
  }

  /** Whoever was told of them before, and has left, is told again. */
  async function* askedAgain(callId: string, signal: AbortSignal) {
    if (asking.answers.forms || asking.answers.urls)
      yield* followQuestions(server.calls, { sessionId: await sessionId(), callId }, { ...options, signal });
  }

  async function read() {
    return readTools(tools, scopeOfSession(await sessionId()), options);
  }

  async function index() {
    const all = await read();
    return indexOf(all.toolsRevision, () => toolsFrom(all));
  }
}

/** The call that is meant, with its arguments as they were written. */
export function calledBy(
  { searches, argumentsJsonOf }: Pick<AgentServerOptions, "searches" | "argumentsJsonOf">,
  asked: AskedCall,
): WrittenCall {
  const argumentsJson = argumentsJsonOf(asked);
  const inner = searches ? innerCall(asked, argumentsJson) : undefined;
  return { id: asked.id, name: asked.name, argumentsJson, ...inner };
}

export interface WrittenCall extends Pick<AskedCall, "id" | "name"> {
  readonly argumentsJson: string;
}
