import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CallToolRequestSchema,
  CallToolResponse,
  ListToolsRequestSchema,
  ListToolsResponse,
} from "#gen/toolbus/tool/v1/tool_service_pb.ts";

import type { CallGrave } from "../../runs/cancellation.ts";

export interface RouterCallOptions {
  readonly signal: AbortSignal;
  /** On whose behalf. */
  readonly principal: string;
}

/** The router as the loop needs it: `ToolService`, its failures as `Failure`. */
export interface ToolRouter extends CallGrave {
  /** Lists are not to be changed: who asks for one that another run has gets the same object. */
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
