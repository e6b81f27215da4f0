import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type Client,
  type ClientCapabilities,
  type InputRequiredResult,
  type InputResponses,
  LOG_LEVEL_META_KEY,
  type Progress,
} from "@modelcontextprotocol/client";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { Tool } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { partsOfTransport } from "#runtime/config/server-transport.ts";
import { mcpSpan, TOOL_ERROR } from "#runtime/telemetry/conventions.ts";
import type { InSpan } from "#runtime/telemetry/in-span.ts";
import { currentTrace } from "#runtime/telemetry/trace-context.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { type Ask, READ_RESOURCE, readResource } from "../../tools/read-resource.ts";
import { askMethod, methodOfTool } from "../../tools/server-method.ts";
import { heldIn } from "../outcome/shown-answers.ts";
import { anyObject, callAsTask } from "../tasks/tasks.ts";
import { capabilitiesOf, requestOptions } from "./client-options.ts";

/** What was answered to an `input_required` result, as the server gets it. */
export interface Answers {
  inputResponses: InputResponses;
  requestState?: string;
}

export interface LinkCall {
  tool: Tool;
  /** What the server may ask on the call's behalf, since 2026-07-28. */
  capabilities: ClientCapabilities;
  answers?: Answers | undefined;
  /** Equal for each execution of one call, for servers that do once what they are asked twice (LOOP-14). */
  idempotencyKey: string;
  /** For how long the server is to keep the result of a task. */
  keepMs: number;
  arguments: Record<string, unknown>;
  onProgress: (progress: Progress) => void;
}

interface LinkCallsOptions {
  client: Client;
  server: McpServer;
  inSpan: InSpan;
  sessionId: () => string | undefined;
  isTaskTool: (name: string) => boolean;
}

/** Where the call's own id stands in its `_meta`. */
const IDEMPOTENCY_META_KEY = "toolbus/idempotency-key";

/** The calls that are sent over a link, until they have ended. */
export function createLinkCalls(options: LinkCallsOptions) {
  const { client, server } = options;
  const isModern = client.getProtocolEra() === "modern";
  const calls = new Set<Promise<unknown>>();

  function paramsOf(request: LinkCall) {
    const capabilities = { ...capabilitiesOf(server), ...request.capabilities };
    return {
      name: request.tool.name,
      arguments: request.arguments,
      _meta: {
        [IDEMPOTENCY_META_KEY]: request.idempotencyKey,
        ...currentTrace(), // within the span of the request
        ...(isModern && { [LOG_LEVEL_META_KEY]: "info", [CLIENT_CAPABILITIES_META_KEY]: capabilities }),
      },
      ...(isModern && request.answers),
    };
  }

  async function send(request: LinkCall, signal: AbortSignal): Promise<CallToolResult | InputRequiredResult> {
    const { tool, onProgress: onprogress } = request;
    const ask: Ask = (method, params) => client.request({ method, params }, anyObject, requestOptions(signal));
    const method = methodOfTool(tool.name);
    if (method !== undefined) return askMethod(ask, method, request.arguments);
    if (tool === READ_RESOURCE) return readResource(ask, request.arguments);
    const params = paramsOf(request);
    const sending = { ...requestOptions(signal), onprogress, allowInputRequired: true };
    if (options.isTaskTool(tool.name)) return callAsTask(client, { ...params, task: { ttl: request.keepMs } }, sending);
    // its definition is for headers that its schema asks for; its output schema is left to whoever reads the result
    return client.callTool(params, { ...sending, toolDefinition: definitionOf(tool) });
  }

  return {
    /** Rejects with whatever the SDK says. The result may stand for a task (`taskIn`), or ask for something. */
    call(request: LinkCall, signal: AbortSignal): Promise<CallToolResult | InputRequiredResult> {
      const call = options.inSpan(
        () => spanOfRequest(request, options),
        async (span) => {
          const answer = await send(request, signal);
          const { isError } = heldIn(answer, "answer") ?? answer;
          if (isError) span.fail(TOOL_ERROR);
          return answer;
        },
      );
      calls.add(call);
      const forget = () => calls.delete(call);
      call.then(forget, forget);
      return call;
    },
    /** Resolves when the calls that were sent have ended, at the latest when the signal aborts. */
    async quiet(limit: AbortSignal): Promise<void> {
      await unlessAborted(Promise.allSettled(calls), limit).catch(() => {}); // then they are cut
    },
  };
}

function spanOfRequest({ tool, arguments: given }: LinkCall, { server, client, sessionId }: LinkCallsOptions) {
  const method = tool === READ_RESOURCE ? "resources/read" : (methodOfTool(tool.name) ?? "tools/call");
  const named = method === "prompts/get" && typeof given.name === "string" ? given.name : undefined;
  const { url } = partsOfTransport(server);
  return mcpSpan({
    ...{ side: "client", method, sessionId: sessionId(), url: url === "" ? undefined : url },
    target: method === "tools/call" ? tool.name : named,
    protocolVersion: client.getNegotiatedProtocolVersion(),
  });
}

type ToolDefinition = NonNullable<NonNullable<Parameters<Client["callTool"]>[1]>["toolDefinition"]>;

const definitions = new WeakMap<Tool, ToolDefinition>();

/** Parsed once a tool, of which there are many calls. */
const definitionOf = (tool: Tool): ToolDefinition =>
  getOrInsertComputed(definitions, tool, () => ({ name: tool.name, inputSchema: JSON.parse(tool.inputSchemaJson) }));
