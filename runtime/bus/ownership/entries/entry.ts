import { compareAndSet, createKey, readKey, removeKey } from "../../buckets/key-value.ts";
import type { Bus } from "../../bus.ts";
import { readSubject } from "../../streams/read.ts";
import { entryKey } from "./names.ts";

const bucket = "toolbus_owners";

/** Who owns a key, as the bucket says; its revision is the fence. */
export interface OwnerEntry {
  readonly instance: string;
  readonly revision: number;
  readonly created: Date;
}

export interface EntryAddress {
  readonly kind: string;
  readonly key: string;
}

export async function readEntry(bus: Bus, at: EntryAddress, signal?: AbortSignal): Promise<OwnerEntry | undefined> {
  const entry = await readKey(bus, bucket, entryKey(at.kind, at.key), { signal });
  if (entry === undefined) return undefined;
  return { instance: entry.json<{ instance: string }>().instance, revision: entry.revision, created: entry.created };
}

/**
 * Writes the entry for an instance, if it has not been written since: `previousRevision` is that of the entry to take over,
 * undefined when there was none. Gives the entry's revision, or undefined when somebody else was first.
 */
export async function writeEntry(
  bus: Bus,
  at: EntryAddress,
  instance: string,
  previousRevision: number | undefined,
): Promise<number | undefined> {
  const write = { bucket, key: entryKey(at.kind, at.key), value: JSON.stringify({ instance }) } as const;
  const outcome =
    previousRevision === undefined
      ? await createKey(bus, write)
      : await compareAndSet(bus, { ...write, revision: previousRevision });
  return outcome.kind === "set" ? outcome.revision : undefined;
}

/** Removes the entry if it still is the one of that revision. */
export async function removeEntry(bus: Bus, at: EntryAddress, revision: number): Promise<boolean> {
  return removeKey(bus, { bucket, key: entryKey(at.kind, at.key), revision });
}

/** The tokens of all keys of a kind that have an entry. */
export async function listTokens(bus: Bus, kind: string, signal?: AbortSignal): Promise<string[]> {
  const prefix = `$KV.${bucket}.${kind}.`;
  const tokens: string[] = [];
  for await (const { subject, headers } of readSubject(bus, `${prefix}*`, { signal })) {
    if (!headers?.has("KV-Operation")) tokens.push(subject.slice(prefix.length)); // else the mark of a removal
  }
  return tokens;
}
