import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type MemoryRecord, MemoryRecordSchema } from "#gen/toolbus/internal/space/v1/memory_pb.ts";
import { type MemoryEntry, MemoryEntrySchema, MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import { refuse, refuseRequest } from "#runtime/failure/failure.ts";
import { keyOf, type Owner } from "../owners/owner.ts";

const mostEntries = 1_000;
/** A record is one message. */
const mostBytes = 1_000_000;
/** What an event has besides its plan. */
const eventBytes = 300;

export type Memory = ReturnType<typeof createMemory>;

/**
 * What an agent chose to remember in a session. One record an agent, so that a change is whole or not at all. `requireRoom` refuses to
 * keep more for a session; nobody is refused unless told.
 */
export function createMemory(
  records: Bucket<MemoryRecord>,
  requireRoom: (sessionId: string, bytes: number) => Promise<void> = async () => {},
) {
  return {
    /** Entries of the same kind and key are replaced. */
    async set(owner: Owner, entries: readonly MemoryEntry[]): Promise<void> {
      for (const entry of entries) refuseUnfit(entry);
      await requireRoom(owner.sessionId, bytesOfAll(entries));
      await records.update(keyOf(owner), (record = newRecord(owner)) => ({
        ...record,
        entries: merged(record.entries, entries),
      }));
    },
    /** Gives how many there were. */
    async delete(owner: Owner, kind: MemoryKind, keys: readonly string[]): Promise<number> {
      const isDoomed = (entry: MemoryEntry) => entry.kind === kind && keys.includes(entry.key);
      const { before } = await records.update(keyOf(owner), (record) =>
        record?.entries.some(isDoomed)
          ? { ...record, entries: record.entries.filter((entry) => !isDoomed(entry)) }
          : undefined,
      );
      return (before?.entries ?? []).filter(isDoomed).length;
    },
    /** By kind and key; of all kinds when it is unspecified. */
    async list(owner: Owner, kind: MemoryKind): Promise<MemoryEntry[]> {
      const entries = (await records.read(keyOf(owner)))?.value.entries ?? [];
      return entries.filter((entry) => kind === MemoryKind.UNSPECIFIED || entry.kind === kind);
    },
  };
}

function newRecord({ sessionId, agent }: Owner): MemoryRecord {
  return create(MemoryRecordSchema, { sessionId, agent });
}

function merged(current: readonly MemoryEntry[], given: readonly MemoryEntry[]): MemoryEntry[] {
  const byKey = new Map(current.map((entry) => [nameOf(entry), entry]));
  for (const entry of given) byKey.set(nameOf(entry), replacement(byKey.get(nameOf(entry)), entry));
  if (byKey.size > mostEntries) refuseFull(`${mostEntries} entries`);
  const entries = [...byKey.values()].sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
  if (bytesOfAll(entries) > mostBytes)
    refuseFull(`${mostBytes} bytes, of which plans that are to wake it take theirs twice`);
  return entries;
}

const bytesOfAll = (entries: readonly MemoryEntry[]) => entries.reduce((sum, entry) => sum + bytesOf(entry), 0);

/** The event of a plan that is due stands in the record, too. */
function bytesOf(entry: MemoryEntry): number {
  const { length } = toBinary(MemoryEntrySchema, entry);
  return dueMsOf(entry) === undefined ? length : 2 * length + eventBytes;
}

function refuseFull(most: string): never {
  return refuse("resource_exhausted", `an agent keeps at most ${most}: delete some first`, { reason: "MEMORY_FULL" });
}

/** Unique for each entry of an agent; in the order of entries. */
export function nameOf({ kind, key }: MemoryEntry): string {
  return `${kind} ${key}`;
}

/** A plan that is set again as it stands has not been changed: it does not wake the agent once more. */
function replacement(current: MemoryEntry | undefined, { kind, key, text, dueTime }: MemoryEntry): MemoryEntry {
  if (current && current.text === text && dueMs(current) === dueMs({ dueTime })) return current;
  return create(MemoryEntrySchema, { kind, key, text, ...(dueTime && { dueTime }) });
}

function dueMs({ dueTime }: Pick<MemoryEntry, "dueTime">): number | undefined {
  return dueTime && timestampMs(dueTime);
}

/** When a plan is to wake the agent; undefined for every other entry, and once it has done so. */
export function dueMsOf({ kind, dueTime, wakeTime }: MemoryEntry): number | undefined {
  return kind === MemoryKind.PLAN && wakeTime === undefined ? dueMs({ dueTime }) : undefined;
}

function refuseUnfit(entry: MemoryEntry): void {
  if (entry.dueTime && entry.kind !== MemoryKind.PLAN) {
    refuseRequest(`entry "${entry.key}" has a time, which only plans may have`, {
      field: "entries.due_time",
      message: "only plans may have one",
    });
  }
  if (entry.dueTime && !isTime(entry.dueTime))
    refuseRequest(`entry "${entry.key}" has a time that is none`, { field: "entries.due_time", message: "is no time" });
}

function isTime(time: NonNullable<MemoryEntry["dueTime"]>): boolean {
  const ms = timestampMs(time);
  return Number.isSafeInteger(ms) && timestampFromMs(ms).seconds === time.seconds;
}
