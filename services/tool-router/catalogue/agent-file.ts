import type { JsonObject } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { agentFromFile } from "#runtime/agent-file/agent-from-file.ts";
import { createFileForm, NAME, object, type Parsed, STRINGS, TEXT, TEXTS } from "./file-form.ts";

const SOURCE_NAME = { type: "string", pattern: "^[a-zA-Z0-9_.-]{1,64}$" };
const COUNT = { type: "integer", minimum: 0, maximum: 4_294_967_295 };
const ANY_OBJECT = { type: "object" };
const AMOUNT = { type: "number", minimum: 0 };
const MODEL = object(
  {
    provider: NAME,
    model: { ...TEXT, minLength: 1 },
    options: ANY_OBJECT,
    contextWindow: COUNT,
    price: object({ inputPerMillion: AMOUNT, outputPerMillion: AMOUNT }),
  },
  ["provider", "model"],
);

const LIMITS = object({
  maxTurns: { ...COUNT, maximum: 100_000 },
  maxToolCalls: COUNT,
  maxParallelCalls: { ...COUNT, maximum: 256 },
  deadlineMs: COUNT,
  maxTokens: { type: "integer", minimum: 0 },
  modelStallMs: COUNT,
  modelRetries: { ...COUNT, maximum: 100 },
  maxCost: AMOUNT,
  maxSelfWakes: { ...COUNT, maximum: 100_000 },
  maxDepth: { ...COUNT, maximum: 32 },
});

/** TOOL-14. */
const MCP_SERVER = {
  ...object(
    {
      name: SOURCE_NAME,
      url: TEXT,
      transport: TEXT,
      command: TEXT,
      args: STRINGS,
      env: TEXTS,
      headers: TEXTS,
      allowedTools: STRINGS,
      healthCheck: object({ intervalMs: COUNT, timeoutMs: COUNT }),
      startupTimeoutMs: COUNT,
      share: { enum: ["session", "agent", "global"] },
    },
    ["name"],
  ),
  oneOf: [{ required: ["url"] }, { required: ["command"] }],
};

const WORKER = object({ name: SOURCE_NAME, file: TEXT, secrets: STRINGS, config: ANY_OBJECT }, ["name"]);

const AGENT = object(
  {
    $schema: TEXT,
    name: NAME,
    description: TEXT,
    instructions: TEXT,
    model: MODEL,
    fallbackModel: MODEL,
    tools: object({ use: STRINGS, allowed: STRINGS, aliases: TEXTS }),
    mcp: object({ servers: { type: "array", items: MCP_SERVER } }),
    workers: { type: "array", items: WORKER },
    sources: {
      type: "array",
      items: object({ name: SOURCE_NAME, provider: NAME, config: ANY_OBJECT }, ["name", "provider"]),
    },
    subAgents: { type: "array", items: object({ agent: NAME, description: TEXT, limits: LIMITS }, ["agent"]) },
    limits: LIMITS,
    wakeOnInbox: { type: "boolean" },
  },
  ["name"],
);

const form = createFileForm<JsonObject>(AGENT);

/** An agent's file; `mcp.servers` and `workers` are a short way to write sources. */
export function parseAgentFile(text: string): Parsed<Agent> {
  const parsed = form(text);
  if (parsed.kind === "parsed") return { kind: "parsed", value: agentFromFile(parsed.value) };
  const { faults, readable } = parsed;
  try {
    return {
      kind: "faulty",
      faults,
      ...(readable && { readable: agentFromFile(readable, { ignoreUnknownFields: true }) }),
    };
  } catch {
    return { kind: "faulty", faults }; // of a form that nothing can be read from
  }
}
