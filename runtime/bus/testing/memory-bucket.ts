import type { Bucket, Change, Found, Stored } from "../buckets/bucket.ts";

export interface MemoryBucketOptions<T> {
  /** Told of each value that is written. */
  onWrite?: (stored: Stored<T>) => void;
  /** Makes a change happen, or throws before or after it as a process that dies. */
  change?: (store: () => void) => void;
}

/** A bucket in memory, with the promises of one on the bus. */
export function createMemoryBucket<T>(options: MemoryBucketOptions<T> = {}): Bucket<T> {
  const { onWrite = () => {}, change = (store) => store() } = options;
  const entries = new Map<string, Found<T>>();
  const history: Change<T>[] = [];
  let changed = Promise.withResolvers<void>();

  function tell(one: Change<T>): void {
    history.push(one);
    changed.resolve();
    changed = Promise.withResolvers();
  }

  function write(key: string, value: T): number {
    const stored = { key, value, revision: history.length + 1, writtenAt: new Date() };
    change(() => {
      entries.set(key, stored);
      tell({ kind: "set", ...stored });
    });
    onWrite(stored);
    return stored.revision;
  }

  return {
    name: "memory",
    read: async (key) => entries.get(key),
    create: async (key, value) => (entries.has(key) ? undefined : write(key, value)),
    put: async (key, value) => write(key, value),
    async update(key, decide) {
      const { value: before, revision = 0 } = entries.get(key) ?? {};
      const value = decide(before, revision);
      if (value === undefined) return { before, value: before, revision, hasChanged: false };
      return { before, value, revision: write(key, value), hasChanged: true };
    },
    replace: async (key, value, revision) =>
      (entries.get(key)?.revision ?? 0) === revision ? write(key, value) : undefined,
    async remove(key, when = () => true) {
      const standing = entries.get(key);
      const isMeant = typeof when === "number" ? (_: T, revision: number) => revision === when : when;
      if (standing === undefined || !isMeant(standing.value, standing.revision)) return false;
      change(() => {
        entries.delete(key);
        tell({ kind: "removed", key, revision: history.length + 1 });
      });
      return true;
    },
    async *list({ where = () => true } = {}) {
      for (const stored of entries.values()) if (where(stored.value)) yield stored;
    },
    keys: async () => new Set(entries.keys()),
    lastRevision: async () => history.length,
    async *follow({ fromRevision = 1, signal } = {}) {
      const ended = new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true }));
      for (let next = fromRevision; !signal?.aborted; ) {
        const coming = changed.promise;
        for (const one of history.slice(next - 1)) {
          next = one.revision + 1;
          yield one;
        }
        if (next > history.length) await Promise.race([coming, ended]);
      }
    },
  };
}
