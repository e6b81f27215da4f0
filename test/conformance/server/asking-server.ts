import { randomBytes } from "node:crypto";
import { createRequestStateCodec, fromJsonSchema, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { openModernServer } from "../../../services/mcp-bridge/testing/servers/modern-server.ts";

/** What the official conformance suite wants a server of 2026-07-28 to ask people, by its names. */
export const ASKING_TOOLS = [
  "test_input_required_result_elicitation",
  "test_input_required_result_request_state",
  "test_input_required_result_multi_round",
  "test_input_required_result_tampered_state",
] as const;

const text = (of: string) => ({ content: [{ type: "text" as const, text: of }] });
const form = <T extends "string" | "boolean">(name: string, type: T) => ({
  type: "object" as const,
  properties: { [name]: { type } as never },
  required: [name],
});
const nameForm = inputRequired.elicit({ message: "What is your name?", requestedSchema: form("name", "string") });
const okForm = inputRequired.elicit({ message: "Is that so?", requestedSchema: form("ok", "boolean") });
const colorForm = inputRequired.elicit({
  message: "Step 2: What is your favorite color?",
  requestedSchema: form("color", "string"),
});

export function openAskingScenarios() {
  const codec = createRequestStateCodec<{ step: number }>({ key: randomBytes(32) });
  return openModernServer(() => {
    const server = new McpServer(
      { name: "asking", version: "1" },
      { capabilities: { tools: {} }, requestState: { verify: codec.verify } },
    );
    const inputSchema = fromJsonSchema({ type: "object" });
    const [elicitation, requestState, multiRound, tamperedState] = ASKING_TOOLS;
    server.registerTool(elicitation, { description: "Asks a person", inputSchema }, async (_, { mcpReq }) => {
      const given = mcpReq.inputResponses?.user_name as { content?: { name?: string } } | undefined;
      if (!given) return inputRequired({ inputRequests: { user_name: nameForm } });
      return text(`Hello, ${given.content?.name}!`);
    });
    for (const name of [requestState, tamperedState]) {
      server.registerTool(name, { description: "Asks a person", inputSchema }, async (_, { mcpReq }) => {
        if (mcpReq.requestState()) return text("state-ok");
        return inputRequired({ inputRequests: { confirm: okForm }, requestState: await codec.mint({ step: 1 }) });
      });
    }
    server.registerTool(multiRound, { description: "Asks a person", inputSchema }, async (_, { mcpReq }) => {
      const step = mcpReq.requestState<{ step: number }>()?.step ?? 0;
      if (step === 2) return text("done");
      const inputRequests = step === 0 ? { step1: nameForm } : { step2: colorForm };
      return inputRequired({ inputRequests, requestState: await codec.mint({ step: step + 1 }) });
    });
    return server;
  });
}
