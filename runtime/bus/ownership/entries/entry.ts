import { type Bucket, jsonCodec } from "../../buckets/bucket.ts";
import { createBucket } from "../../buckets/stored-bucket.ts";
import type { Bus } from "../../bus.ts";
import { tokenFromKey } from "./names.ts";

type StoredOwner = Pick<OwnerEntry, "instance">;
/** Read by hand: the library that checks records elsewhere takes 10 MB in each service that owns something. */
const codec = jsonCodec(readOwner);

function readOwner(value: unknown): StoredOwner {
  const { instance } = value as { instance?: unknown };
  if (typeof instance !== "string") throw new TypeError("the record names no instance");
  return { instance };
}

/** By token of their key. */
function entriesOf(bus: Bus, kind: string): Bucket<StoredOwner> {
  return createBucket(bus, { bucket: "toolbus_owners", prefix: `${kind}.`, codec });
}

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
  const found = await entriesOf(bus, at.kind).read(tokenFromKey(at.key), signal);
  return found && { instance: found.value.instance, revision: found.revision, created: found.writtenAt };
}

/**
 * Writes the entry for an instance, if it has not been written since: `previousRevision` is that of the entry to take over,
 * undefined when there was none. Gives the entry's revision, or undefined when somebody else was first.
 */
export async function writeEntry(
  bus: Bus,
  { kind, key }: EntryAddress,
  instance: string,
  previousRevision: number | undefined,
): Promise<number | undefined> {
  const [entries, token] = [entriesOf(bus, kind), tokenFromKey(key)];
  if (previousRevision === undefined) return entries.create(token, { instance });
  return entries.replace(token, { instance }, previousRevision);
}

/** Removes the entry if it still is the one of that revision. */
export async function removeEntry(bus: Bus, { kind, key }: EntryAddress, revision: number): Promise<boolean> {
  return entriesOf(bus, kind).remove(tokenFromKey(key), revision);
}

/** The tokens of all keys of a kind that have an entry. */
export async function listTokens(bus: Bus, kind: string, signal?: AbortSignal): Promise<string[]> {
  return [...(await entriesOf(bus, kind).keys(signal))];
}
