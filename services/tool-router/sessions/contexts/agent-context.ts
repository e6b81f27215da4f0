import { hash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { type Scope, ScopeSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { RunSources } from "./sources/run-sources.ts";

/** An agent as it acts: in a session, by itself, or the catalogue as if one agent had it all. */
export interface AgentContext {
  readonly agent: Agent;
  readonly revision: number;
  readonly principal: string;
  readonly scope: Scope;
  /** In a session: the stored revision since which its agent is the active one. */
  readonly since: number;
  /** Of a run that brings sources: the agent without them, and the key of its context among the session's. */
  readonly run?: { readonly key: string; readonly base: Agent; readonly names: ReadonlySet<string> };
}

export function contextOf(
  agent: Agent,
  of: { revision: number; since?: number; sessionId?: string; principal?: string },
): AgentContext {
  const { revision, since = 0, sessionId = "", principal = "" } = of;
  const scope = create(ScopeSchema, { sessionId, agent: agent.name, contextRevision: revision, principal });
  return { agent, revision, principal, scope, since };
}

export function keyOf({ scope: { sessionId, agent }, run }: AgentContext): string {
  return run?.key ?? (sessionId === "" ? `agent ${agent}` : keyOfSession(sessionId));
}

export function keyOfSession(sessionId: string): string {
  return `session ${sessionId}`;
}

/** Undefined for a run that brings no sources. One that brought others under the same id has another context. */
export function keyOfRun(sessionId: string, { runId = "", runSources = [] }: Partial<RunSources>): string | undefined {
  if (runSources.length === 0) return undefined;
  const identity = runSources.map(({ name, provider, config }) => [name, provider, config]);
  const digest = hash("sha256", JSON.stringify(identity), "base64url");
  return `run ${sessionId} ${runId} ${digest}`;
}
