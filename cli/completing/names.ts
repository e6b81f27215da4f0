import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { type GlobalOptions, openConnection } from "../connection.ts";
import type { Asked } from "./asked.ts";

/** A shell waits while it completes. */
const PATIENCE_MS = 800;
const PAGE = 1_000;

/** The names that the suite knows; none where no suite answers in time, or it refuses. */
export async function namesFromSuite(asked: Asked, options: GlobalOptions): Promise<string[]> {
  return (await namesFrom(asked, options)).filter(isLiteral);
}

/** Servers name their tools as they like, and bash executes what it is given to complete by: `$(...)` at the press of a key. */
export function isLiteral(name: string): boolean {
  return /^[\w@][\w@./:-]*$/.test(name);
}

async function namesFrom(asked: Asked, options: GlobalOptions): Promise<string[]> {
  const { client } = openConnection(options);
  const within = { timeoutMs: PATIENCE_MS };
  try {
    switch (asked.kind) {
      case "agents": {
        const { agents } = await client(AgentService).listAgents({ pageSize: PAGE }, within);
        return agents.map(({ agent }) => agent?.name ?? "");
      }
      case "sessions": {
        const { sessions } = await client(SessionService).listSessions({ pageSize: PAGE }, within);
        return sessions.map(({ id }) => id);
      }
      case "tools": {
        const { agent: value } = asked;
        const scope = value === undefined ? { case: undefined } : ({ case: "agent", value } as const);
        const { tools } = await client(ToolService).listTools({ scope, pageSize: PAGE }, within);
        return tools.flatMap(({ reference, modelName }) => [reference || modelName]);
      }
    }
  } catch {
    return []; // whoever completes asks for no reason, and none would be seen
  }
}
