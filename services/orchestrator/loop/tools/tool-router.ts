import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { ListToolsRequestSchema, ListToolsResponse, ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { ClientOnBehalf, OnBehalfOptions } from "#runtime/rpc/bus/client-on-behalf.ts";

export interface Agents {
  /** The configuration of an agent; throws `not_found`. */
  getAgent(name: string, options: OnBehalfOptions): Promise<Agent>;
}

export type CallCanceler = Pick<ClientOnBehalf<typeof ToolCallService>, "cancelToolCall">;

/** The router as the loop needs it. */
export interface ToolRouter extends CallCanceler, Pick<ClientOnBehalf<typeof ToolService>, "callTool"> {
  /** Do not change a list: runs share the same object. */
  listTools(
    request: MessageInitShape<typeof ListToolsRequestSchema>,
    options: OnBehalfOptions & {
      /** The agent that the session most likely has. */
      readonly agent?: string;
    },
  ): Promise<ListToolsResponse>;
  /** The agent that a session has; undefined while it is on its way to another one, or closed. */
  agentOf(sessionId: string, options: OnBehalfOptions): Promise<string | undefined>;
}
