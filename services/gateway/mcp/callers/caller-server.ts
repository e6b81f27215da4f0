import type { CallToolResult, Tool as McpTool } from "@modelcontextprotocol/server";
import { z } from "zod";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { clientOver } from "#runtime/rpc/bus/client-over.ts";
import { parseExactly } from "#runtime/schema/json/exact-json.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { inForm } from "#runtime/schema/zod-form.ts";
import { textBlock } from "../agent/result-blocks.ts";
import { type OwnCall, type OwnTool, serveOwn } from "../own/own-server.ts";
import type { McpExchange, McpParts } from "../revisions/mcp-exchange.ts";
import { writtenArguments } from "../revisions/written-arguments.ts";
import type { SuiteParts } from "../suite/suite-server.ts";
import { CANCELED, REQUESTED } from "./attached-caller.ts";
import { type CallerClients, messageForm, sessionMessage } from "./session-message.ts";

/** Stands where an agent's name does. No agent is called so. */
export const SESSIONS = "~sessions";

const instructions =
  "Talk to agents of toolbus, and lend them tools of your own while you wait for their answers: declare caller_tools with " +
  `session_message, execute what ${REQUESTED} asks for, and answer with caller_tool_response.`;

const responseForm = z.object({
  session_id: z.string().describe("The session, as the request has it."),
  request_id: z.string().describe("The request."),
  result: z.unknown().optional().describe("What came of it; null is a result, too."),
  error: z.string().nullish().describe("Why it failed, in words. Where there is one, the result does not count."),
});

/** Conversations with agents for callers that are MCP clients (CTR-11). */
export function serveCallers(parts: McpParts & SuiteParts, exchange: McpExchange): Promise<Response> {
  const clients: CallerClients = {
    callers: clientOver(parts.transportOf(CallerService), CallerService),
    runs: clientOver(parts.transportOf(RunService), RunService),
    sessions: parts.sessions,
  };
  const written = writtenArguments(exchange.bodyText);
  const tools = [
    toolFrom(
      {
        name: "session_message",
        description:
          "Says something to an agent and waits for its answer. What the agent asks of your tools comes as " +
          `${REQUESTED} {request_id, session_id, tool, arguments, expires_at} while this call is open, and as ${CANCELED} where it is ` +
          "not wanted any more.",
        annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
      },
      messageForm,
      (call, given) => sessionMessage(clients, call, given),
    ),
    toolFrom(
      {
        name: "caller_tool_response",
        description: `Answers a request of an agent, which came as ${REQUESTED}. Exactly one answer counts.`,
        annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
      },
      responseForm,
      async ({ options, request }, { session_id: sessionId, request_id: requestId, result, error }) => {
        const asWritten = parseExactly(written({ id: request.id, name: "", arguments: { result } }));
        const value = JSON.stringify(isObject(asWritten) ? (asWritten.result ?? null) : null);
        const outcome = error ? { case: "error" as const, value: error } : { case: "resultJson" as const, value };
        const { late } = await clients.callers.respond({ sessionId, requestId, outcome }, options);
        const structuredContent = { late };
        return { content: [textBlock(JSON.stringify(structuredContent))], structuredContent };
      },
    ),
  ];
  return serveOwn(parts, exchange, { tools, instructions, responseMode: "sse" });
}

function toolFrom<F extends z.ZodType>(
  described: Omit<McpTool, "inputSchema">,
  form: F,
  run: (call: OwnCall, given: z.infer<F>) => Promise<CallToolResult>,
): OwnTool {
  const inputSchema = z.toJSONSchema(form, { io: "input" }) as McpTool["inputSchema"];
  return { listed: { ...described, inputSchema }, run: async (call, given) => run(call, inForm(form, given)) };
}
