import type { Table } from "../owners/table.ts";
import { type Death, immortal, writeOrDie } from "./memory-log.ts";

export interface MemoryTable<T> extends Table<T> {
  /** Every record as it stands and then each change. */
  follow(signal: AbortSignal): AsyncIterable<T>;
}

/** A table in memory, whose readers get what was written and whose writers may die. */
export function createMemoryTable<T>(death: Death = immortal()): MemoryTable<T> {
  const records = new Map<string, T>();
  const listeners = new Set<() => void>();
  const history: T[] = [];
  return {
    read: async (key) => records.get(key),
    async change(key, decide) {
      const before = records.get(key);
      const after = decide(before);
      if (after === undefined) return before;
      writeOrDie(death, () => {
        records.set(key, after);
        history.push(after);
      });
      for (const listener of listeners) listener();
      return before;
    },
    async remove(key, isDoomed) {
      const current = records.get(key);
      if (current !== undefined && isDoomed(current)) writeOrDie(death, () => records.delete(key));
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
}
