import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { StoredAgent } from "#gen/toolbus/agent/v1/agent_service_pb.ts";

/**
 * The configurations of agents that were read last. Revisions grow with each change, and the context revision of a session is at least
 * that of its agent: so a configuration of the context's revision, or a later one, is current.
 */
export interface KnownAgents {
  /** The configuration, if it is not older than that revision. */
  find(name: string, revision: number): Agent | undefined;
  has(name: string): boolean;
  keep(stored: StoredAgent): void;
}

const mostKept = 256;

export function createKnownAgents(): KnownAgents {
  const kept = new Map<string, { agent: Agent; revision: number }>();
  return {
    find(name, revision) {
      const known = kept.get(name);
      return known !== undefined && revision > 0 && revision <= known.revision ? known.agent : undefined;
    },
    has: (name) => kept.has(name),
    keep({ agent, revision }) {
      if (agent === undefined) return;
      kept.delete(agent.name); // the one that was read last stands last
      kept.set(agent.name, { agent, revision: Number(revision) });
      const [oldest] = kept.keys();
      if (kept.size > mostKept && oldest !== undefined) kept.delete(oldest);
    },
  };
}
