import type { CallOptions, Client } from "@connectrpc/connect";
import type { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import type { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { valuesOf } from "../../plain/exchange.ts";
import type { Tools } from "../agent/tool-list.ts";
import type { McpSessions } from "./sessions.ts";

/** What the door asks the services for. */
export interface McpParts {
  readonly tools: Tools;
  readonly calls: Pick<Client<typeof ToolCallService>, "cancelToolCall" | "getToolCall">;
  readonly agents: Pick<Client<typeof AgentService>, "listAgents">;
  readonly sessions: McpSessions;
  /** Counts a call of a principal until it is given back. */
  readonly takeCall: (caller: Caller) => () => void;
  /** Aborts when this process stops. */
  readonly stopping: AbortSignal;
}

/** A request to the door. */
export interface McpExchange {
  readonly caller: Caller;
  /** The head; its signal aborts when the client has left. */
  readonly request: Request;
  readonly agent: string;
  /** The body, parsed and as it was written; none but of a POST of JSON. */
  readonly body: unknown;
  readonly bodyText: string;
}

export function optionsFor(caller: Caller): CallOptions {
  return { contextValues: valuesOf(caller) };
}
