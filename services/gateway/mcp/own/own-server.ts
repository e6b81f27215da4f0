import type { JsonObject } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import {
  type CallToolResult,
  createMcpHandler,
  type Tool as McpTool,
  type PerRequestResponseMode,
  ProtocolError,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { optionsFor } from "../../plain/exchange.ts";
import { INFO } from "../agent/agent-server.ts";
import { textBlock } from "../agent/result-blocks.ts";
import { DoorServer } from "../http/door-server.ts";
import { JSON_RPC, tellFault } from "../http/refusals.ts";
import type { McpExchange, McpParts } from "../revisions/mcp-exchange.ts";

/** A call of a tool, on behalf of the client's principal. Its signal aborts when the client has left, or this process stops. */
export interface OwnCall {
  readonly caller: Caller;
  readonly options: CallOptions & { readonly signal: AbortSignal };
  readonly request: ServerContext["mcpReq"];
}

/** A tool that is the suite's, and no agent's. */
export interface OwnTool {
  readonly listed: McpTool;
  readonly run: (call: OwnCall, given: JsonObject) => Promise<CallToolResult>;
}

export interface OwnServer {
  readonly tools: readonly OwnTool[];
  readonly instructions: string;
  readonly responseMode?: PerRequestResponseMode;
}

/** Answers by tools that need no agent, without sessions in all revisions: each request stands alone. */
export function serveOwn(
  parts: Pick<McpParts, "takeCall" | "onFault">,
  { caller, request, body }: McpExchange,
  { tools, instructions, responseMode = "auto" }: OwnServer,
): Promise<Response> {
  const createServer = () => {
    const server = new DoorServer(parts.onFault, INFO, { capabilities: { tools: {} }, instructions });
    server.setRequestHandler("tools/list", () => ({ tools: tools.map(({ listed }) => listed) }));
    server.setRequestHandler("tools/call", async ({ params: { name, arguments: given = {} } }, { mcpReq }) => {
      const tool = tools.find(({ listed }) => listed.name === name);
      if (tool === undefined)
        throw new ProtocolError(JSON_RPC.invalidParams, `there is no tool ${JSON.stringify(name.slice(0, 128))}`);
      using ending = openEnding(mcpReq.signal, request.signal);
      const { signal } = ending;
      try {
        using _taken = { [Symbol.dispose]: parts.takeCall(caller) };
        return await tool.run(
          { caller, options: { ...optionsFor(caller), signal }, request: mcpReq },
          given as JsonObject,
        );
      } catch (error) {
        tellFault(error, parts.onFault);
        return refusalFrom(error);
      }
    });
    return server;
  };
  const handler = createMcpHandler(createServer, { responseMode });
  return handler.fetch(request, { parsedBody: body });
}

/** For the model, which may ask better. */
function refusalFrom(error: unknown): CallToolResult {
  const { code, message, reason, fieldViolations } = failureFromConnectError(error);
  const told = { error: message, code, reason, ...(fieldViolations && { fieldViolations }) };
  return { content: [textBlock(JSON.stringify(told))], isError: true };
}
