import type { CallOptions } from "@connectrpc/connect";
import { ProtocolError, type RequestId, Server } from "@modelcontextprotocol/server";
import type { ToolProgress } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallToolResult as Answer } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { isUnavailable } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { resumed } from "#runtime/rpc/watching/resumed.ts";
import { rpcFailureFrom } from "../http/refusals.ts";
import { resultFrom } from "./call-result.ts";
import { readTools, scopeOfSession, type Tools, toolsFrom } from "./tool-list.ts";

/** A call of a tool. */
export interface AskedCall {
  readonly id: RequestId;
  readonly name: string;
  readonly arguments: Record<string, unknown>;
}

export interface AgentServerOptions {
  readonly tools: Tools;
  /** Whose tools, once somebody asks for them. */
  readonly sessionId: () => Promise<string>;
  /** Whose they are otherwise. */
  readonly options: CallOptions;
  readonly instructions?: string;
  /** The id of the call, which is the same whenever it is asked for again (mcp-2). */
  readonly callIdOf: (call: AskedCall, sessionId: string) => string;
  /** Its arguments as they were written, numbers and all. */
  readonly argumentsJsonOf: (call: AskedCall) => string;
  /** Counts a call of the principal until it is given back. */
  readonly takeCall: () => () => void;
}

const INFO = { name: "toolbus", title: "toolbus", version: "0.1.0" };
/** How long a call that lost its router looks for another one. */
const PATIENCE_MS = 30_000;
/** A list is an answer for one principal, and clients that listen are told when it is another. */
const CACHE = { ttlMs: 5_000, cacheScope: "private" } as const;

/** One agent's tools as an MCP server, for the messages of one request. */
export function createAgentServer(options: AgentServerOptions): Server {
  const { tools, sessionId, instructions } = options;
  const server = new Server(INFO, {
    capabilities: { tools: { listChanged: true } },
    ...(instructions !== undefined && { instructions }),
    cacheHints: { "tools/list": CACHE, "server/discover": CACHE },
  });
  server.setRequestHandler("tools/list", () =>
    asProtocolErrors(async () => ({
      tools: toolsFrom(await readTools(tools, scopeOfSession(await sessionId()), options.options)),
    })),
  );
  server.setRequestHandler("tools/call", ({ params }, { mcpReq }) => {
    const { id, signal, _meta } = mcpReq;
    const progressToken = _meta?.progressToken;
    let told = Number.NEGATIVE_INFINITY;
    /** MCP wants each to be more than the one before. */
    const onProgress = async ({ progress, total, message }: ToolProgress) => {
      if (progressToken === undefined || progress <= told) return;
      told = progress;
      const more = { ...(total > 0 && { total }), ...(message !== "" && { message }) };
      await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress, ...more } });
    };
    const asked = { id, name: params.name, arguments: params.arguments ?? {} };
    return asProtocolErrors(async () => resultFrom(await call(options, asked, { signal, onProgress })));
  });
  return server;
}

interface CallControl {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: ToolProgress) => Promise<void>;
}

/** Its id is the same at the next router: what may have begun is not begun again. */
async function call(
  options: AgentServerOptions,
  asked: AskedCall,
  { signal, onProgress }: CallControl,
): Promise<Answer> {
  using _taken = { [Symbol.dispose]: options.takeCall() };
  const sessionId = await options.sessionId();
  const argumentsJson = options.argumentsJsonOf(asked);
  const request = { callId: options.callIdOf(asked, sessionId), sessionId, name: asked.name, argumentsJson };
  const open = () => options.tools.callTool(request, { ...options.options, signal });
  for await (const { event } of resumed({ open, isPassing: isUnavailable, patienceMs: PATIENCE_MS, signal })) {
    if (event.case === "progress") await onProgress(event.value);
    if (event.case === "result") return event.value;
  }
  return refuse("unavailable", "the call ended without a result", { reason: "OUTCOME_UNKNOWN" });
}

async function asProtocolErrors<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code, message, data } = rpcFailureFrom(error);
    throw new ProtocolError(code, message, data);
  }
}
