import { type MemoryEntry, MemoryKind } from "#gen/toolbus/space/v1/space_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Recipient } from "./inbox.ts";
import type { Table } from "./table.ts";

/** What an agent chose to remember in a session. One record an agent, so that a change is whole or not at all. */
export interface Memory {
  /** Entries of the same kind and key are replaced. */
  set(owner: Recipient, entries: readonly MemoryEntry[]): Promise<void>;
  /** Gives how many there were. */
  delete(owner: Recipient, kind: MemoryKind, keys: readonly string[]): Promise<number>;
  /** By kind and key; of all kinds when it is unspecified. */
  list(owner: Recipient, kind: MemoryKind): Promise<MemoryEntry[]>;
}

export const mostEntries = 1_000;

export function createMemory(entriesByOwner: Table<MemoryEntry[]>): Memory {
  return {
    async set(owner, entries) {
      for (const entry of entries) refuseUnfit(entry);
      await entriesByOwner.change(keyOf(owner), (current = []) => merged(current, entries));
    },
    async delete(owner, kind, keys) {
      refuseUnknownKind(kind);
      const doomed = (entry: MemoryEntry) => entry.kind === kind && keys.includes(entry.key);
      const before = await entriesByOwner.change(keyOf(owner), (current = []) =>
        current.some(doomed) ? current.filter((entry) => !doomed(entry)) : undefined,
      );
      return (before ?? []).filter(doomed).length;
    },
    async list(owner, kind) {
      const entries = (await entriesByOwner.read(keyOf(owner))) ?? [];
      return entries.filter((entry) => kind === MemoryKind.UNSPECIFIED || entry.kind === kind);
    },
  };
}

function keyOf({ sessionId, agent }: Recipient): string {
  return `${sessionId}.${agent}`;
}

function merged(current: readonly MemoryEntry[], entries: readonly MemoryEntry[]): MemoryEntry[] {
  const byKey = new Map([...current, ...entries].map((entry) => [`${entry.kind} ${entry.key}`, entry]));
  if (byKey.size > mostEntries) {
    refuse("resource_exhausted", `an agent keeps at most ${mostEntries} entries: delete some first`);
  }
  return [...byKey.values()].sort((a, b) => a.kind - b.kind || a.key.localeCompare(b.key));
}

function refuseUnfit(entry: MemoryEntry): void {
  refuseUnknownKind(entry.kind);
  if (entry.key === "") refuse("invalid_argument", "entries.key: must not be empty");
  if (entry.dueAt) refuse("unimplemented", `entry "${entry.key}" has a time, but nothing wakes an agent at a time`);
}

function refuseUnknownKind(kind: MemoryKind): void {
  if (kind === MemoryKind.GOAL || kind === MemoryKind.MEMORY || kind === MemoryKind.PLAN) return;
  refuse("invalid_argument", "kind: must be goal, memory or plan");
}
