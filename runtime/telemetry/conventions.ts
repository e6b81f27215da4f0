/**
 * The spans of what agents do, by OpenTelemetry's conventions for generative AI and MCP, which are still in development
 * (https://github.com/open-telemetry/semantic-conventions-genai). What models, tools and people say is not in them.
 */

import { type Attributes, SpanKind } from "@opentelemetry/api";
import type { SpanStart } from "./in-span.ts";

/** Who works, and in which conversation. */
export interface AgentAtWork {
  readonly agent: string;
  readonly sessionId: string;
  /** Empty for what is outside a run. */
  readonly runId: string;
}

function attributesOf({ agent, sessionId, runId }: AgentAtWork): Attributes {
  return {
    "gen_ai.agent.name": agent,
    "gen_ai.conversation.id": sessionId,
    ...(runId !== "" && { "toolbus.run.id": runId }),
  };
}

/** A run, as long as one process works on it. */
export function runSpan(at: AgentAtWork): SpanStart {
  const attributes = { "gen_ai.operation.name": "invoke_agent", ...attributesOf(at) };
  return { name: `invoke_agent ${at.agent}`, kind: SpanKind.INTERNAL, attributes };
}

export function modelSpan(at: AgentAtWork, model: { readonly provider: string; readonly model: string }): SpanStart {
  const attributes = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": providerName(model.provider),
    "gen_ai.request.model": model.model,
    "gen_ai.request.stream": true,
    ...attributesOf(at),
  };
  return { name: `chat ${model.model}`, kind: SpanKind.CLIENT, attributes };
}

/** Packages whose providers the conventions call otherwise. */
const PROVIDERS: Readonly<Record<string, string>> = {
  "amazon-bedrock": "aws.bedrock",
  azure: "azure.ai.openai",
  google: "gcp.gemini",
  "google-vertex": "gcp.vertex_ai",
  mistral: "mistral_ai",
  xai: "x_ai",
};

function providerName(provider: string): string {
  const name = provider.replace(/^@ai-sdk\//, "");
  return PROVIDERS[name] ?? name;
}

export interface Answered {
  readonly modelId: string;
  readonly finishReason: string;
  readonly usage: TokenUsage;
}

export interface TokenUsage {
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
}

export function attributesOfAnswer({ modelId, finishReason, usage }: Answered): Attributes {
  return {
    "gen_ai.response.model": modelId,
    "gen_ai.response.finish_reasons": [finishReason],
    ...attributesOfUsage(usage),
  };
}

export function attributesOfUsage({ inputTokens, outputTokens }: TokenUsage): Attributes {
  return { "gen_ai.usage.input_tokens": Number(inputTokens), "gen_ai.usage.output_tokens": Number(outputTokens) };
}

/** How long the first words of an answer took. */
export function attributesOfFirstChunk(ms: number): Attributes {
  return { "gen_ai.response.time_to_first_chunk": ms / 1_000 };
}

/** A tool at work. One that the client of the run executes is a function; others are the agent's own. */
export function toolSpan(
  at: AgentAtWork,
  { name, callId, isOfClient }: { readonly name: string; readonly callId: string; readonly isOfClient: boolean },
): SpanStart {
  const attributes = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": name,
    "gen_ai.tool.call.id": callId,
    "gen_ai.tool.type": isOfClient ? "function" : "extension",
    ...attributesOf(at),
  };
  return { name: `execute_tool ${name}`, kind: SpanKind.INTERNAL, attributes };
}

/** What a tool's answer that is an error counts as. */
export const TOOL_ERROR = "tool_error";

/** One request of MCP, on the side that sends it or on the one that answers it. */
export interface McpRequest {
  readonly side: "client" | "server";
  readonly method: string;
  /** The tool or prompt that it is about. */
  readonly target?: string | undefined;
  readonly requestId?: string | undefined;
  readonly protocolVersion?: string | undefined;
  readonly sessionId?: string | undefined;
  /** Where the server is: a URL, or nothing for a process behind pipes. */
  readonly url?: string | undefined;
}

export function mcpSpan(request: McpRequest): SpanStart {
  const { side, method, target, requestId, protocolVersion, sessionId, url } = request;
  const isTool = method === "tools/call";
  const attributes: Attributes = {
    "mcp.method.name": method,
    ...(isTool && { "gen_ai.operation.name": "execute_tool" }),
    ...(target !== undefined && { [isTool ? "gen_ai.tool.name" : "gen_ai.prompt.name"]: target }),
    ...(requestId !== undefined && { "jsonrpc.request.id": requestId }),
    ...(protocolVersion !== undefined && { "mcp.protocol.version": protocolVersion }),
    ...(sessionId !== undefined && { "mcp.session.id": sessionId }),
    ...placeOf(url),
  };
  const kind = side === "client" ? SpanKind.CLIENT : SpanKind.SERVER;
  return { name: target === undefined ? method : `${method} ${target}`, kind, attributes };
}

function placeOf(url: string | undefined): Attributes {
  if (url === undefined) return { "network.transport": "pipe" };
  const parsed = URL.parse(url);
  const isHttp = parsed?.protocol.startsWith("http") ?? false;
  return {
    "network.transport": "tcp",
    ...(isHttp && { "network.protocol.name": "http" }),
    ...(parsed?.hostname && { "server.address": parsed.hostname }),
    ...(parsed?.port && { "server.port": Number(parsed.port) }),
  };
}
