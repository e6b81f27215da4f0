import type { KeyObject } from "node:crypto";
import type { Client } from "@connectrpc/connect";
import type { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { onFirstUse } from "#runtime/collections/on-first-use.ts";
import { type Caller, principalOf } from "#runtime/rpc/identity.ts";
import type { InSpan } from "#runtime/telemetry/in-span.ts";
import { optionsFor } from "../../plain/exchange.ts";
import type { Content } from "../agent/sources.ts";
import { createStoredResults, type StoredCalls } from "../agent/stored-results.ts";
import type { Tools } from "../agent/tool-list.ts";
import type { CallInSession } from "../calls/call.ts";
import type { OnFault } from "../http/refusals.ts";
import type { HeldCalls } from "../tasks/held-calls.ts";
import type { TasksOptions } from "../tasks/task-calls.ts";
import type { McpSessions } from "./sessions.ts";

/** What the door asks the services for. */
export interface McpParts {
  readonly tools: Tools;
  readonly calls: StoredCalls;
  readonly content: Content;
  readonly agents: Pick<Client<typeof AgentService>, "listAgents">;
  readonly sessions: McpSessions;
  /** Counts a call of a principal until it is given back. */
  readonly takeCall: (caller: Caller) => () => void;
  /** Calls that are tasks, as far as this gateway waits for them. */
  readonly held: HeldCalls;
  readonly onFault: OnFault;
  readonly inSpan: InSpan;
  /** By which all gateways know what they gave clients to bring back. */
  readonly stateKey: KeyObject;
  /** The largest message. */
  readonly maxBytes: number;
  /** Aborts when this process stops. */
  readonly stopping: AbortSignal;
}

/** A request to the door. */
export interface McpExchange {
  readonly caller: Caller;
  /** The head; its signal aborts when the client has left, or this process waits no longer. */
  readonly request: Request;
  readonly agent: string;
  /** The body, parsed and as it was written; none but of a POST of JSON. */
  readonly body: unknown;
  readonly bodyText: string;
  /** Whether the client comes back to a call whose stream it has lost. */
  readonly isResumed?: boolean;
  /** When the answer has begun: from then on a client of the older protocol can come back for it. `false`: it left before. */
  readonly begun: Promise<boolean>;
}

/** What an agent's server asks for, whichever the revision: all of it once, however often it is asked. */
export function serverParts(parts: McpParts, { caller, request }: McpExchange, sessionId: () => Promise<string>) {
  const options = optionsFor(caller);
  return {
    ...parts,
    options,
    principal: principalOf(caller),
    results: createStoredResults(parts.calls, options, parts.maxBytes),
    searches: new URL(request.url).searchParams.get("search") === "1",
    sessionId: onFirstUse(sessionId),
    callIn:
      (id: string): CallInSession =>
      (call, options) =>
        parts.tools.callTool({ ...call, sessionId: id }, options),
    takeCall: () => parts.takeCall(caller),
    left: request.signal,
  } satisfies Partial<TasksOptions>;
}
