import type { Table } from "../table.ts";

export interface MemoryTable<T> extends Table<T> {
  /** Writes that are still stored; then the process that writes has died. */
  writesLeft: number;
  /** Every record as it stands and then each change. */
  follow(signal: AbortSignal): AsyncIterable<T>;
}

/** A table in memory, whose readers get what was written and whose writers may die. */
export function createMemoryTable<T>(): MemoryTable<T> {
  const records = new Map<string, T>();
  const listeners = new Set<() => void>();
  const history: T[] = [];
  const table: MemoryTable<T> = {
    writesLeft: Number.POSITIVE_INFINITY,
    read: async (key) => records.get(key),
    async change(key, decide) {
      const before = records.get(key);
      const after = decide(before);
      if (after === undefined) return before;
      if (table.writesLeft-- <= 0) throw new Error("the process died");
      records.set(key, after);
      history.push(after);
      for (const listener of listeners) listener();
      return before;
    },
    async remove(key, isDoomed) {
      const current = records.get(key);
      if (current !== undefined && isDoomed(current)) records.delete(key);
    },
    list: async () => [...records.values()],
    async *follow(signal) {
      for (let next = 0; ; ) {
        while (next < history.length) yield history[next++] as T;
        if (signal.aborted) return;
        await new Promise<void>((resolve) => {
          listeners.add(resolve);
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
      }
    },
  };
  return table;
}
