import type { RunKeys } from "../../runs/create/acceptance.ts";

/** Keys in memory: each leads to the run that took it first. */
export function createMemoryKeys(): RunKeys {
  const runIdsByKey = new Map<string, string>();
  const nameOf = (sessionId: string, key: string) => `${sessionId} ${key}`;
  return {
    find: async (sessionId, key) => runIdsByKey.get(nameOf(sessionId, key)),
    async take(sessionId, key, runId) {
      const name = nameOf(sessionId, key);
      if (!runIdsByKey.has(name)) runIdsByKey.set(name, runId);
      return runIdsByKey.get(name) ?? runId;
    },
  };
}
