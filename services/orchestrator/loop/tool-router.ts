import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CallToolRequestSchema,
  CallToolResponse,
  ListToolsRequestSchema,
  ListToolsResponse,
} from "#gen/toolbus/router/v1/tool_router_pb.ts";

export interface RouterCallOptions {
  readonly signal: AbortSignal;
  /** On whose behalf. */
  readonly principal: string;
}

/** The router as the loop needs it: `ToolRouterService`, its failures as `Failure`. */
export interface ToolRouter {
  listTools(
    request: MessageInitShape<typeof ListToolsRequestSchema>,
    options: RouterCallOptions,
  ): Promise<ListToolsResponse>;
  /** Progress and logs, then exactly one result. */
  callTool(
    request: MessageInitShape<typeof CallToolRequestSchema>,
    options: RouterCallOptions,
  ): AsyncIterable<CallToolResponse>;
}
