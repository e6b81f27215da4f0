// What a login may do on the bus, in the words of nats-server's configuration, and what JetStream's own subjects are for it.

import { BUCKETS, STREAMS, type StoreName } from "../declarations/declarations.ts";
import { streamOf, subjectsOf } from "../declarations/declared-config.ts";
import type { SpeaksFor } from "./trust/trust-list.ts";

/** Who owns a store does everything with it. Others read it, and write only the subjects or keys that are named. */
export type StoreAccess = "owns" | { readonly writes: readonly string[] };

export type StoresAccess = Readonly<Partial<Record<StoreName, StoreAccess>>>;

/** Every service finds out whether anything is stored. */
export const PROBING: StoresAccess = { TOOLBUS_PROBE: { writes: STREAMS.TOOLBUS_PROBE.subjects } };

export interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
  /** May also publish to the reply subjects of what it receives, and for so long. */
  readonly answersFor?: string;
}

/** One that may sign in; without permissions, it may do everything. */
export interface BusUser {
  readonly name: string;
  readonly permissions?: Permissions;
  /** Without it, nothing that it says of a caller counts. */
  readonly speaksFor?: SpeaksFor;
}

/** What a login publishes to create, read and write its stores. Answers come to its inbox. */
export function publishedToStores(stores: StoresAccess): string[] {
  const entries = Object.entries(stores) as [StoreName, StoreAccess][];
  if (entries.length === 0) return [];
  const each = entries.flatMap(([store, access]) => [
    ...readingOf(streamOf(store)),
    ...(access === "owns" ? ownedOf(store) : access.writes.map((key) => subjectOfKey(store, key))),
  ]);
  return ["$JS.API.INFO", ...each]; // which the client asks before it opens an object store
}

/** Everybody may create what is missing, since whoever starts first needs it, and all declare the same. */
function readingOf(stream: string): string[] {
  const api = "$JS.API";
  return [
    `${api}.STREAM.CREATE.${stream}`,
    `${api}.STREAM.INFO.${stream}`,
    `${api}.STREAM.MSG.GET.${stream}`,
    `${api}.DIRECT.GET.${stream}`,
    `${api}.DIRECT.GET.${stream}.>`,
    `${api}.CONSUMER.*.${stream}`,
    `${api}.CONSUMER.*.${stream}.>`,
    `${api}.CONSUMER.*.*.${stream}.>`, // DURABLE.CREATE and MSG.NEXT
    `$JS.ACK.${stream}.>`,
    `$JS.ACK.*.*.${stream}.>`,
    `$JS.FC.${stream}.>`,
  ];
}

function ownedOf(store: StoreName): string[] {
  const stream = streamOf(store);
  return [
    `$JS.API.STREAM.UPDATE.${stream}`,
    `$JS.API.STREAM.PURGE.${stream}`,
    `$JS.API.STREAM.MSG.DELETE.${stream}`,
    ...subjectsOf(store),
  ];
}

/** A stream's subjects are named whole, a bucket's by their key. */
function subjectOfKey(store: StoreName, key: string): string {
  return store in BUCKETS ? `$KV.${store}.${key}` : key;
}
