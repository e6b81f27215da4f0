import type { CallOptions } from "@connectrpc/connect";
import { type LoggingLevel, type RequestId, Server, type ServerContext } from "@modelcontextprotocol/server";
import { LogLevel, type ToolLog, type ToolProgress } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallToolResult as Answer, CallToolResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { isUnavailable } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { resumed } from "#runtime/rpc/watching/resumed.ts";
import type { Answering } from "../http/refusals.ts";
import { innerCall, SEARCH_INSTRUCTIONS, SEARCH_TOOLS, searched } from "../search/search-tools.ts";
import { indexOf } from "../search/tool-index.ts";
import { resultFrom } from "./call-result.ts";
import { servePrompts } from "./prompts.ts";
import { serveResources } from "./resources.ts";
import { type Content, createAgentSources } from "./sources.ts";
import type { StoredResults } from "./stored-results.ts";
import { readTools, scopeOfSession, type Tools, toolsFrom } from "./tool-list.ts";

/** A call of a tool. */
export interface AskedCall {
  readonly id: RequestId;
  readonly name: string;
  readonly arguments: Record<string, unknown>;
}

/** Calls a tool in a session that both sides know. */
export type CallInSession = (
  call: { readonly callId: string; readonly name: string; readonly argumentsJson: string },
  options: CallOptions,
) => AsyncIterable<CallToolResponse>;

export interface AgentServerOptions {
  readonly tools: Tools;
  readonly content: Content;
  readonly results: StoredResults;
  /** Whose tools, once somebody asks for them. */
  readonly sessionId: () => Promise<string>;
  /** On whose behalf all is asked for (mcp-4). */
  readonly options: CallOptions;
  readonly instructions?: string;
  /** The id of the call, which is the same whenever it is asked for again (mcp-2). */
  readonly callIdOf: (call: AskedCall) => string;
  /** In that session. */
  readonly callTool: CallInSession;
  /** Its arguments as they were written, numbers and all. */
  readonly argumentsJsonOf: (call: AskedCall) => string;
  readonly answering: Answering;
  /** Counts a call of the principal until it is given back. */
  readonly takeCall: () => () => void;
  /** Whether the client can read links to resources. */
  readonly knowsLinks: boolean;
  /** Whether each request says which log messages it wants, as in 2026-07-28. */
  readonly logs: boolean;
  /** Whether the client finds tools by words, and is not listed them. */
  readonly searches: boolean;
}

/** What clients are told of this server. */
export const INFO = { name: "toolbus", title: "toolbus", version: "0.1.0" };
/** How long a call that lost its router looks for another one. */
const PATIENCE_MS = 30_000;
/** A list is an answer for one principal, and clients that listen are told when it is another. */
const CACHE = { ttlMs: 5_000, cacheScope: "private" } as const;
const CACHED = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"] as const;

/** One agent as an MCP server, for the messages of one request. */
export function createAgentServer(server: AgentServerOptions): Server {
  const { tools, sessionId, options, logs, answering, searches } = server;
  const instructions =
    searches && server.instructions ? `${server.instructions}\n\n${SEARCH_INSTRUCTIONS}` : server.instructions;
  const own = new Server(INFO, {
    capabilities: {
      tools: { listChanged: true },
      resources: {},
      prompts: {},
      completions: {},
      ...(logs && { logging: {} }),
    },
    ...(instructions !== undefined && { instructions }),
    cacheHints: Object.fromEntries(CACHED.map((method) => [method, CACHE])),
  });
  own.setRequestHandler("tools/list", () =>
    answering(async () => ({ tools: searches ? [...SEARCH_TOOLS] : await list() })),
  );
  own.setRequestHandler("tools/call", ({ params: { name, arguments: given = {} } }, { mcpReq }) =>
    answering(async () => {
      const found = searches ? await searched(name, given, index) : undefined;
      if (found) return found;
      const asked = { id: mcpReq.id, name, arguments: given };
      const callId = server.callIdOf(asked);
      const meant = calledBy(server, asked);
      const answer = await call(server, { asked: meant, callId, signal: mcpReq.signal }, teller(mcpReq, logs));
      const hasSchema = async () => !searches && (await list()).some((tool) => tool.name === name && tool.outputSchema);
      return resultFrom(answer, { ...server, callId, hasSchema });
    }),
  );
  const sources = createAgentSources({ ...server, options });
  serveResources(own, sources, server.results);
  servePrompts(own, sources);
  return own;

  async function list() {
    return toolsFrom(await readTools(tools, scopeOfSession(await sessionId()), options));
  }

  async function index() {
    const all = await readTools(tools, scopeOfSession(await sessionId()), options);
    return indexOf(all.toolsRevision, () => toolsFrom(all));
  }
}

type Tell = (event: CallToolResponse["event"]) => Promise<void>;

/** What a call tells before its result. */
function teller({ _meta, notify, log }: ServerContext["mcpReq"], logs: boolean): Tell {
  const progressToken = _meta?.progressToken;
  let told = Number.NEGATIVE_INFINITY;
  /** MCP wants each to be more than the one before. */
  async function tellProgress({ progress, total, message }: ToolProgress): Promise<void> {
    if (progressToken === undefined || progress <= told) return;
    told = progress;
    const more = { ...(total > 0 && { total }), ...(message !== "" && { message }) };
    await notify({ method: "notifications/progress", params: { progressToken, progress, ...more } });
  }
  async function tellLog({ level, message, fieldsJson }: ToolLog): Promise<void> {
    await log(LEVELS[level] ?? "info", fieldsJson === "" ? message : { message, fields: JSON.parse(fieldsJson) });
  }
  return async (event) => {
    if (event.case === "progress") await tellProgress(event.value);
    if (event.case === "log" && logs) await tellLog(event.value);
  };
}

const LEVELS: Partial<Record<LogLevel, LoggingLevel>> = {
  [LogLevel.TRACE]: "debug",
  [LogLevel.DEBUG]: "debug",
  [LogLevel.WARN]: "warning",
  [LogLevel.ERROR]: "error",
};

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

interface BegunCall {
  readonly asked: WrittenCall;
  readonly callId: string;
  readonly signal: AbortSignal;
}

/** Its id is the same at the next router: what may have begun is not begun again. */
async function call(
  server: AgentServerOptions,
  { asked: { name, argumentsJson }, callId, signal }: BegunCall,
  tell: Tell,
): Promise<Answer> {
  using _taken = { [Symbol.dispose]: server.takeCall() };
  const request = { callId, name, argumentsJson };
  const open = () => server.callTool(request, { ...server.options, signal });
  for await (const { event } of resumed({ open, isPassing: isUnavailable, patienceMs: PATIENCE_MS, signal })) {
    if (event.case === "result") return event.value;
    await tell(event);
  }
  return refuse("unavailable", "the call ended without a result", { reason: "OUTCOME_UNKNOWN" });
}
