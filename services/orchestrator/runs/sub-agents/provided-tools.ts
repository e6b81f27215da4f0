import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Agent, SubAgent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { OfferedToolSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { Effect, ExecutionType, type Tool, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Agents } from "../../loop/tools/tool-router.ts";

/** How long an agent that is called may take where nothing says so. */
const defaultTimeoutMs = 600_000;

const inputSchemaJson = JSON.stringify({
  type: "object",
  properties: {
    input: {
      type: "string",
      minLength: 1,
      description: "What to do, with all that has to be known: it sees nothing else.",
    },
  },
  required: ["input"],
  additionalProperties: false,
});

/** LOOP-17: the agents that an agent may call, as tools. They belong to no source. */
export async function provideSubAgents(
  agents: Agents,
  { agent: name, principal }: { agent: string; principal: string },
  signal: AbortSignal,
): Promise<MessageInitShape<typeof OfferedToolSchema>[]> {
  if (name === "") return [];
  const { subAgents } = await agents.getAgent(name, { signal, principal });
  const describe = async (offered: SubAgent) => {
    if (offered.description !== "") return offered.description;
    const other = await agents.getAgent(offered.agent, { signal, principal }).catch(() => undefined); // its call will fail with the reason
    return other?.description || `Asks the agent ${offered.agent}.`;
  };
  return Promise.all(
    subAgents.map(async (offered) => ({ source: "", tool: toolFrom(offered, await describe(offered)) })),
  );
}

export function findSubAgent({ subAgents }: Agent, tool: string): SubAgent | undefined {
  return subAgents.find(({ agent }) => toolName(agent) === tool);
}

export function toolName(agent: string): string {
  return `agent_${agent}`;
}

/** A repeated call finds the run that the first one started: so it may be repeated. */
function toolFrom({ agent, limits }: SubAgent, description: string): Tool {
  return create(ToolSchema, {
    name: toolName(agent),
    description,
    inputSchemaJson,
    executionType: ExecutionType.CUSTOM,
    customType: { provider: "agents", toolType: "run" },
    effect: Effect.IDEMPOTENT,
    visible: false,
    timeout: limits?.timeout ?? durationFromMs(defaultTimeoutMs),
  });
}
