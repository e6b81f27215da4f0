import type {
  CreateMessageRequest,
  CreateMessageResult,
  ElicitRequest,
  ElicitResult,
} from "@modelcontextprotocol/client";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import type { ToolLog } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { InSpan } from "#runtime/telemetry/in-span.ts";
import type { TransportContext, TransportModule } from "../transport/module.ts";
import type { KnownEra } from "./era/connect-by-era.ts";
import type { ServerSubscriptions } from "./resources/server-subscriptions.ts";

export interface LinkEvents {
  onToolsChanged: () => void;
  onResourceUpdated: (uri: string) => void;
  /** The server tells of its resources no more. */
  onSubscriptionsLost: (subscriptions: ServerSubscriptions) => void;
  onLog: (log: ToolLog) => void;
  /** Of servers up to 2025-11-25, which ask a person while they hold a call open, until the signal aborts. */
  onElicit: (params: ElicitRequest["params"], signal: AbortSignal) => Promise<ElicitResult>;
  /** Has a text written by a model, for a server that may ask for one. */
  onSample: (params: CreateMessageRequest["params"], signal: AbortSignal) => Promise<CreateMessageResult>;
}

export interface LinkOptions extends LinkEvents {
  /** With its secrets resolved. */
  server: McpServer;
  module: TransportModule;
  context: TransportContext;
  /** How the server is spoken with; absent finds out. */
  era?: KnownEra | undefined;
  inSpan: InSpan;
}
