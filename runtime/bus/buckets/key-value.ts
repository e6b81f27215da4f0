import type { KvEntry } from "@nats-io/kv";
import type { Bus } from "../bus.ts";
import type { BucketName } from "../declarations/declarations.ts";
import { isPassing } from "../jetstream-errors.ts";
import { retryOnBus } from "../link.ts";
import { appendFenced } from "../streams/append.ts";

export interface KeyOptions {
  signal?: AbortSignal | undefined;
}

/** The entry of a key as its leader has it; undefined when there is none or it was deleted. */
export async function readKey(
  bus: Bus,
  bucket: BucketName,
  key: string,
  options: KeyOptions = {},
): Promise<KvEntry | undefined> {
  const entry = await readRaw(bus, bucket, key, options);
  return entry?.operation === "PUT" ? entry : undefined;
}

export type CompareAndSet = { kind: "set"; revision: number } | { kind: "conflict" };

/** Writes a value if the key still has that revision; 0 means a key that has never been written. */
export async function compareAndSet(
  bus: Bus,
  write: { bucket: BucketName; key: string; revision: number; value: Uint8Array | string } & KeyOptions,
): Promise<CompareAndSet> {
  const outcome = await appendFenced(bus, {
    subject: `$KV.${write.bucket}.${write.key}`,
    expectedLastSequence: write.revision,
    payload: write.value,
    signal: write.signal,
  });
  return outcome.kind === "appended" ? { kind: "set", revision: outcome.sequence } : outcome;
}

/**
 * Creates a key that has no value; `conflict` when it has one. Most keys that are created have never been written, so that is
 * tried first.
 */
export async function createKey(
  bus: Bus,
  write: { bucket: BucketName; key: string; value: Uint8Array | string } & KeyOptions,
): Promise<CompareAndSet> {
  const first = await compareAndSet(bus, { ...write, revision: 0 });
  if (first.kind === "set") return first;
  const entry = await readRaw(bus, write.bucket, write.key, write);
  if (entry?.operation === "PUT") return { kind: "conflict" };
  return compareAndSet(bus, { ...write, revision: entry?.revision ?? 0 });
}

/** Removes a key if it still has that revision; its marker goes after a minute. True when it was removed here. */
export async function removeKey(
  bus: Bus,
  removal: { bucket: BucketName; key: string; revision: number } & KeyOptions,
): Promise<boolean> {
  const outcome = await appendFenced(bus, {
    subject: `$KV.${removal.bucket}.${removal.key}`,
    expectedLastSequence: removal.revision,
    payload: "",
    headers: { "KV-Operation": "PURGE", "Nats-Rollup": "sub", "Nats-TTL": "60s" },
    signal: removal.signal,
  });
  return outcome.kind === "appended";
}

/** What to do with a value: write another, or leave it and go home with a result. */
export type Decision<R> = { set: Uint8Array | string; result: R } | { keep: true; result: R };

/**
 * Reads, decides, and writes if nobody else wrote meanwhile; otherwise does it all again. `decide` may be called often and
 * must have no effects. Gives the result of the decision that held, with the revision that stands after it.
 */
export async function casUpdate<R>(
  bus: Bus,
  bucket: BucketName,
  key: string,
  decide: (entry: KvEntry | undefined) => Decision<R>,
  options: KeyOptions = {},
): Promise<{ result: R; revision: number }> {
  for (;;) {
    options.signal?.throwIfAborted();
    const found = await readRaw(bus, bucket, key, options);
    const decision = decide(found?.operation === "PUT" ? found : undefined);
    const revision = found?.revision ?? 0;
    if ("keep" in decision) return { result: decision.result, revision };
    const outcome = await compareAndSet(bus, { bucket, key, revision, value: decision.set, signal: options.signal });
    if (outcome.kind === "set") return { result: decision.result, revision: outcome.revision };
  }
}

async function readRaw(bus: Bus, bucket: BucketName, key: string, options: KeyOptions): Promise<KvEntry | undefined> {
  const read = async () => (await bus.keyValue(bucket)).get(key);
  return (
    (await retryOnBus(bus.link, read, { signal: options.signal, what: `reading ${bucket} ${key}`, isPassing })) ??
    undefined
  );
}
