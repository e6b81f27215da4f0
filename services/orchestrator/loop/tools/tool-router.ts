import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type {
  CallToolRequestSchema,
  CallToolResponse,
  ListToolsRequestSchema,
  ListToolsResponse,
} from "#gen/toolbus/tool/v1/tool_service_pb.ts";

export interface RouterCallOptions {
  readonly signal: AbortSignal;
  /** On whose behalf. */
  readonly principal: string;
}

export interface Agents {
  /** The configuration of an agent; throws `not_found`. */
  getAgent(
    name: string,
    options: RouterCallOptions & {
      /** The context revision of a session that has the agent: a configuration that is not older is not read again. */
      readonly contextRevision?: number;
    },
  ): Promise<Agent>;
}

export interface RememberedAgents extends Agents {
  /** Whether a configuration of the agent was read before, current or not. */
  knows(name: string): boolean;
}

export interface CallCanceler {
  /** The call never begins any more, and ends where it runs. */
  cancelCall(callId: string, reason: string, options: RouterCallOptions): Promise<void>;
}

/** The router as the loop needs it: `ToolService`, its failures as `Failure`. */
export interface ToolRouter extends CallCanceler {
  /** Do not change a list: runs share the same object. */
  listTools(
    request: MessageInitShape<typeof ListToolsRequestSchema>,
    options: RouterCallOptions & {
      /** The agent that the session most likely has. */
      readonly agent?: string;
    },
  ): Promise<ListToolsResponse>;
  /** The agent that a session has; undefined while it is on its way to another one, or closed. */
  agentOf(sessionId: string, options: RouterCallOptions): Promise<string | undefined>;
  /** Progress and logs, then exactly one result. */
  callTool(
    request: MessageInitShape<typeof CallToolRequestSchema>,
    options: RouterCallOptions,
  ): AsyncIterable<CallToolResponse>;
}
