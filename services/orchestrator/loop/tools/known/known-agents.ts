import type { Agent } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { StoredAgent } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";

const mostKept = 256;

/**
 * The configurations of agents that were read last. Revisions grow with each change, and the context revision of a session is at least
 * that of its agent: so a configuration of the context's revision, or a later one, is current.
 */
export function createKnownAgents() {
  const kept = new BoundedMap<string, { agent: Agent; revision: number }>(mostKept);
  return {
    /** The configuration, if it is not older than that revision. */
    find(name: string, revision: number): Agent | undefined {
      const known = kept.get(name);
      return known !== undefined && revision > 0 && revision <= known.revision ? known.agent : undefined;
    },
    has: (name: string) => kept.has(name),
    keep({ agent, revision }: StoredAgent): void {
      if (agent !== undefined) kept.set(agent.name, { agent, revision: Number(revision) });
    },
  };
}
