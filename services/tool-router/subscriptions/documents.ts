import { type DescMessage, fromJsonString, type MessageShape, toJsonString } from "@bufbuild/protobuf";
import { firstSince } from "#runtime/bus/append.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import type { BucketName } from "#runtime/bus/declarations.ts";
import { casUpdate, createKey, readKey, removeKey } from "#runtime/bus/key-value.ts";
import { followSubject, lastSequenceOf, readSubject, type StoredMessage } from "#runtime/bus/read.ts";
import type { Shelf } from "../catalogue/shelf.ts";
import type { Documents, Stored } from "../documents.ts";
import { jointReading } from "./joint-reading.ts";

/** Where messages of one kind lie: a bucket, and what their keys begin with there. Values are JSON, readable with `nats kv get`. */
export interface Place<D extends DescMessage> {
  bucket: BucketName;
  prefix: string;
  schema: D;
}

export function createDocuments<D extends DescMessage>(bus: Bus, place: Place<D>): Documents<MessageShape<D>> {
  const { bucket, prefix, schema } = place;
  type T = MessageShape<D>;
  return {
    async read(key) {
      const entry = await readKey(bus, bucket, prefix + key);
      return entry && { key, value: valueFrom(schema, entry.value), revision: entry.revision };
    },
    async create(key, value) {
      const created = await createKey(bus, { bucket, key: prefix + key, value: toJsonString(schema, value) });
      return created.kind === "set" ? created.revision : undefined;
    },
    async update(key, decide) {
      const { result, revision } = await casUpdate(bus, bucket, prefix + key, (entry) => {
        const before: T | undefined = entry && valueFrom(schema, entry.value);
        const after = decide(before, entry?.revision ?? 0);
        if (after === undefined) return { keep: true as const, result: { before, value: before, hasChanged: false } };
        return { set: toJsonString(schema, after), result: { before, value: after, hasChanged: true } };
      });
      return { ...result, revision };
    },
    async remove(key, decide) {
      for (;;) {
        const standing = await readKey(bus, bucket, prefix + key);
        if (standing === undefined || !decide(valueFrom(schema, standing.value), standing.revision)) return false;
        if (await removeKey(bus, { bucket, key: prefix + key, revision: standing.revision })) return true;
      }
    },
    async *list(signal, { since, containing = "" } = {}) {
      const standing = new Map<string, Stored<T>>();
      const subject = `$KV.${bucket}.>`;
      const first = since && (await firstSince(bus, subject, since, { signal }));
      if (first === null) return;
      for await (const message of readSubject(bus, subject, { fromSequence: first?.seq, signal })) {
        const isPart =
          message.data.length === 0 ||
          Buffer.from(message.data.buffer, message.data.byteOffset, message.data.length).includes(containing);
        if (!isPart) continue;
        const read = entryFrom(place, message);
        if (read?.value === undefined) standing.delete(read?.key ?? "");
        else standing.set(read.key, { key: read.key, value: read.value, revision: message.sequence });
      }
      yield* standing.values();
    },
  };
}

/** Keeps shelves as their bucket is. */
export interface Following extends AsyncDisposable {
  /** Waits until the shelves show every write that was acknowledged before. */
  caughtUp(): Promise<void>;
}

/** Resolves when the shelves hold what the bucket held. */
export async function openFollowing(
  bus: Bus,
  bucket: BucketName,
  shelves: { shelf: Shelf<unknown>; place: Place<DescMessage> }[],
  onFault: (fault: string) => void,
): Promise<Following> {
  const closing = new AbortController();
  const subject = `$KV.${bucket}.>`;

  async function follow(): Promise<void> {
    for await (const message of followSubject(bus, subject, { signal: closing.signal })) {
      for (const { shelf, place } of shelves) {
        const entry = readOrTell(place, message);
        if (entry) shelf.take(entry.key, message.sequence, entry.value);
        else shelf.pass(message.sequence);
      }
    }
  }

  function readOrTell(place: Place<DescMessage>, message: StoredMessage) {
    try {
      return entryFrom(place, message);
    } catch (error) {
      onFault(`${message.subject} cannot be read: ${error instanceof Error ? error.message : error}`);
      return undefined;
    }
  }

  const following = follow().catch((error: unknown) => onFault(`${bucket} is no longer followed: ${error}`));
  const caughtUp = jointReading(async () => {
    const last = await lastSequenceOf(bus, subject);
    await Promise.all(shelves.map(({ shelf }) => shelf.reached(last)));
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
function entryFrom<D extends DescMessage>({ bucket, prefix, schema }: Place<D>, message: StoredMessage) {
  const key = message.subject.slice(`$KV.${bucket}.`.length);
  if (!key.startsWith(prefix)) return undefined;
  const isRemoval = message.data.length === 0;
  return { key: key.slice(prefix.length), value: isRemoval ? undefined : valueFrom(schema, message.data) };
}

/** Fields that a newer router wrote are passed over. */
function valueFrom<D extends DescMessage>(schema: D, bytes: Uint8Array): MessageShape<D> {
  return fromJsonString(schema, new TextDecoder().decode(bytes), { ignoreUnknownFields: true });
}
