import type { Documents, Stored } from "../../catalogue/documents.ts";

/** Documents in memory, with the promises of the bucket; each write is told. */
export function createMemoryDocuments<T>(onWrite: (stored: Stored<T>) => void = () => {}): Documents<T> {
  const entries = new Map<string, Stored<T>>();
  let last = 0;
  function write(key: string, value: T): number {
    last += 1;
    const stored = { key, value, revision: last };
    entries.set(key, stored);
    onWrite(stored);
    return last;
  }
  return {
    read: async (key) => entries.get(key),
    create: async (key, value) => (entries.has(key) ? undefined : write(key, value)),
    async update(key, decide) {
      const before = entries.get(key);
      const after = decide(before?.value, before?.revision ?? 0);
      if (after === undefined) {
        return { before: before?.value, value: before?.value, revision: before?.revision ?? 0, hasChanged: false };
      }
      return { before: before?.value, value: after, revision: write(key, after), hasChanged: true };
    },
    async remove(key, decide) {
      const standing = entries.get(key);
      return standing !== undefined && decide(standing.value, standing.revision) && entries.delete(key);
    },
    async *list() {
      yield* entries.values();
    },
  };
}
