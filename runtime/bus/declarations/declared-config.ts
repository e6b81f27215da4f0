import type { StreamConfig } from "@nats-io/jetstream";
import {
  BUCKETS,
  type BucketDeclaration,
  type BucketName,
  formatKey,
  type Limits,
  largestMessageBytes,
  OBJECT_STORES,
  type ObjectStoreName,
  STREAMS,
  type StoreName,
  type StreamDeclaration,
  type StreamName,
  storeFormat,
} from "./declarations.ts";

/** A stream's settings as the server keeps them. */
export type DeclaredConfig = Pick<
  StreamConfig,
  "name" | "subjects" | "retention" | "discard" | "max_bytes" | "max_age" | "max_msg_size" | "max_msgs_per_subject"
> &
  Partial<StreamConfig>;

const nanosecondsPerMillisecond = 1_000_000;
const dayMs = 24 * 60 * 60_000;
/** Where nothing else is declared. */
const duplicateWindowMs = 120_000;

/** All declarations in the server's words, buckets and object stores as the streams that they are. */
export function configsFromDeclarations(replicas: number): DeclaredConfig[] {
  return [
    ...Object.entries(STREAMS).map(([name, declaration]) => configOfStream(name, declaration)),
    ...Object.entries(BUCKETS).map(([name, declaration]) => configOfBucket(name as BucketName, declaration)),
    ...Object.entries(OBJECT_STORES).map(([name, declaration]) => configOfStore(name as ObjectStoreName, declaration)),
  ].map((config) => ({ ...config, metadata: { [formatKey]: String(storeFormat) }, num_replicas: replicas }));
}

/** The stream that a store is, as JetStream names it. */
export function streamOf(store: StoreName): string {
  if (store in BUCKETS) return `KV_${store}`;
  return store in OBJECT_STORES ? `OBJ_${store}` : store;
}

/** What is stored by publishing to it. */
export function subjectsOf(store: StoreName): readonly string[] {
  if (store in BUCKETS) return [`$KV.${store}.>`];
  return store in OBJECT_STORES ? [`$O.${store}.C.>`, `$O.${store}.M.>`] : STREAMS[store as StreamName].subjects;
}

function configOfLimits(limits: Limits) {
  return {
    description: limits.description,
    storage: "file" as const,
    max_bytes: limits.maxBytes,
    max_msg_size: limits.maxMessageBytes ?? largestMessageBytes,
    max_age: (limits.maxAgeMs ?? 0) * nanosecondsPerMillisecond,
    allow_direct: true,
  };
}

function configOfStream(name: string, declaration: StreamDeclaration): DeclaredConfig {
  return {
    ...configOfLimits(declaration),
    name,
    subjects: [...declaration.subjects],
    retention: declaration.retention,
    discard: declaration.discard,
    max_msgs_per_subject: declaration.maxMessagesPerSubject ?? -1,
    duplicate_window: (declaration.duplicateWindowMs ?? duplicateWindowMs) * nanosecondsPerMillisecond,
    allow_rollup_hdrs: declaration.hasSchedules ?? false,
    allow_msg_schedules: declaration.hasSchedules ?? false,
    deny_delete: false,
    deny_purge: false,
  };
}

/** Delete markers expire, so that a bucket of short-lived keys does not fill with them. */
function configOfBucket(name: BucketName, declaration: BucketDeclaration): DeclaredConfig {
  return {
    ...configOfStore(name, declaration),
    discard: declaration.discard ?? "new",
    max_msgs_per_subject: declaration.history ?? 1,
    deny_delete: true,
    allow_msg_ttl: true,
    subject_delete_marker_ttl: dayMs * nanosecondsPerMillisecond,
  };
}

/** Of an object store; a bucket differs in what keeps its keys. */
function configOfStore(name: BucketName | ObjectStoreName, limits: Limits): DeclaredConfig {
  return {
    ...configOfLimits(limits),
    name: streamOf(name),
    subjects: [...subjectsOf(name)],
    retention: "limits",
    discard: "new",
    max_msgs_per_subject: -1,
    duplicate_window: duplicateWindowMs * nanosecondsPerMillisecond,
    allow_rollup_hdrs: true,
    deny_delete: false,
    deny_purge: false,
  };
}
