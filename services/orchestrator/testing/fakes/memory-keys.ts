import type { RunKeys, TakenKey } from "../../runs/create/acceptance.ts";

/** Keys in memory: each leads to the run that took it first. */
export function createMemoryKeys(): RunKeys {
  const takenByKey = new Map<string, TakenKey>();
  const nameOf = (sessionId: string, key: string) => `${sessionId} ${key}`;
  return {
    find: async (sessionId, key) => takenByKey.get(nameOf(sessionId, key))?.runId,
    async take(sessionId, key, runId) {
      const name = nameOf(sessionId, key);
      const taken = takenByKey.get(name) ?? { runId, keyPosition: takenByKey.size + 1 };
      takenByKey.set(name, taken);
      return taken;
    },
  };
}
