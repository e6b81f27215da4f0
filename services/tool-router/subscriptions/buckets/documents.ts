import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import type { KvEntry } from "@nats-io/kv";
import { casUpdate, createKey, readKey, removeKey } from "#runtime/bus/buckets/key-value.ts";
import { sharedReading } from "#runtime/bus/buckets/shared-reading.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import type { BucketName } from "#runtime/bus/declarations/declarations.ts";
import { firstSince } from "#runtime/bus/streams/append.ts";
import { followSubject, lastSequenceOf, readSubject, type StoredMessage } from "#runtime/bus/streams/read.ts";
import { readRecord } from "#runtime/bus/streams/record.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { BucketView } from "../../catalogue/bucket-view.ts";
import type { Documents, Stored } from "../../catalogue/documents.ts";

/**
 * Where messages of one kind lie: a bucket, and what their keys begin with there. Values are binary, so
 * that what a newer release has written of one stays in it when it is written again here.
 */
export interface Place<T> {
  bucket: BucketName;
  prefix: string;
  codec: Codec<T>;
}

export interface Codec<T> {
  encode(value: T): Uint8Array;
  /** Throws for bytes that are none. */
  decode(bytes: Uint8Array): T;
}

/** Of what is stored as the message that it is. */
export function codecOf<D extends DescMessage>(schema: D): Codec<MessageShape<D>> {
  return { encode: (value) => toBinary(schema, value), decode: (bytes) => fromBinary(schema, bytes) };
}

export function createDocuments<T>(bus: Bus, place: Place<T>): Documents<T> {
  const { bucket, prefix, codec } = place;
  return {
    async read(key) {
      const entry = await readKey(bus, bucket, prefix + key);
      return entry && { key, value: valueAt(place, entry), revision: entry.revision };
    },
    async create(key, value) {
      const created = await createKey(bus, { bucket, key: prefix + key, value: codec.encode(value) });
      return created.kind === "set" ? created.revision : undefined;
    },
    async update(key, decide) {
      const { result, revision } = await casUpdate(bus, bucket, prefix + key, (entry) => {
        const before: T | undefined = entry && valueAt(place, entry);
        const after = decide(before, entry?.revision ?? 0);
        if (after === undefined) return { keep: true as const, result: { before, value: before, hasChanged: false } };
        return { set: codec.encode(after), result: { before, value: after, hasChanged: true } };
      });
      return { ...result, revision };
    },
    async remove(key, decide) {
      for (;;) {
        const standing = await readKey(bus, bucket, prefix + key);
        if (standing === undefined || !decide(valueAt(place, standing), standing.revision)) return false;
        if (await removeKey(bus, { bucket, key: prefix + key, revision: standing.revision })) return true;
      }
    },
    async *list(signal, { since, containing = new Uint8Array() } = {}) {
      const standing = new Map<string, Stored<T>>();
      const subject = `$KV.${bucket}.>`;
      const first = since && (await firstSince(bus, subject, since, { signal }));
      if (first === null) return;
      for await (const message of readSubject(bus, subject, { fromSequence: first?.seq, signal })) {
        const isPart =
          message.data.length === 0 ||
          Buffer.from(message.data.buffer, message.data.byteOffset, message.data.length).includes(
            Buffer.from(containing),
          );
        if (!isPart) continue;
        const read = readRecord(bus, message, () => entryFrom(place, message) ?? otherKind);
        if (read === undefined || read === otherKind) continue;
        if (read.value === undefined) standing.delete(read.key);
        else standing.set(read.key, { key: read.key, value: read.value, revision: message.sequence });
      }
      yield* standing.values();
    },
  };
}

/** Keeps views of a bucket current. */
export interface Following extends AsyncDisposable {
  /** Waits until the views show every write that was acknowledged before. */
  caughtUp(): Promise<void>;
}

/** Resolves when the views hold what the bucket held. */
export async function openFollowing(
  bus: Bus,
  bucket: BucketName,
  views: { view: BucketView<unknown>; place: Place<unknown> }[],
  onFault: (fault: string) => void,
): Promise<Following> {
  const closing = new AbortController();
  const subject = `$KV.${bucket}.>`;

  async function follow(): Promise<void> {
    for await (const message of followSubject(bus, subject, { signal: closing.signal })) {
      for (const { view, place } of views) {
        const entry = readOrTell(place, message);
        if (entry) view.apply(entry.key, message.sequence, entry.value);
        else view.skip(message.sequence);
      }
    }
  }

  function readOrTell(place: Place<unknown>, message: StoredMessage) {
    const read = readRecord(bus, message, () => entryFrom(place, message) ?? otherKind);
    return read === otherKind ? undefined : read;
  }

  const following = follow().catch((error: unknown) => onFault(`${bucket} is no longer followed: ${error}`));
  const caughtUp = sharedReading(async () => {
    const last = await lastSequenceOf(bus, subject);
    await Promise.all(views.map(({ view }) => view.reached(last)));
  });
  await caughtUp();
  return {
    caughtUp,
    async [Symbol.asyncDispose]() {
      closing.abort();
      await following;
    },
  };
}

/** Undefined for a key of another kind; a value of undefined is a removal. */
function entryFrom<T>({ bucket, prefix, codec }: Place<T>, message: StoredMessage) {
  const key = message.subject.slice(`$KV.${bucket}.`.length);
  if (!key.startsWith(prefix)) return undefined;
  const isRemoval = message.data.length === 0;
  return { key: key.slice(prefix.length), value: isRemoval ? undefined : codec.decode(message.data) };
}

/** The value of a key that somebody asked for: it is not passed over, nor written over, when it cannot be read. */
function valueAt<T>({ bucket, codec }: Place<T>, { key, value }: KvEntry): T {
  try {
    return codec.decode(value);
  } catch (cause) {
    return refuse("data_loss", `what is stored as ${key} in ${bucket} cannot be read`, {
      reason: "RECORD_LOST",
      cause,
    });
  }
}

const otherKind = Symbol("a key of another kind");
