import type { StoredMsg } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import { refuse } from "../../failure/failure.ts";
import type { Bus } from "../bus.ts";
import { type AppendOutcome, appendFenced, firstSince, lastOf } from "../streams/append.ts";
import { followSubject, lastSequenceOf, readSubject, type StoredMessage } from "../streams/read.ts";
import { readRecord } from "../streams/record.ts";
import type { Bucket, Change, Part, Place, Stored } from "./bucket.ts";

/** The server keeps the message of a removal for so long, for those who follow. */
const removal = { "KV-Operation": "PURGE", "Nats-Rollup": "sub", "Nats-TTL": "60s" };

/** A kind of value in its bucket on the bus. */
export function createBucket<T>(bus: Bus, place: Place<T>): Bucket<T> {
  const subject = `$KV.${place.bucket}.${place.prefix}`;
  const subjects = `${subject}>`;
  const subjectOf = (key: string) => (isKey(key) ? subject + key : refuseKey(key));
  const last = async (key: string, signal?: AbortSignal) => lastOf(bus, subjectOf(key), { signal });
  const readable = (standing: StoredMsg | undefined) => standing && valueAt(bus, place, standing);

  async function append(key: string, value: T, revision: number, signal?: AbortSignal): Promise<AppendOutcome> {
    const payload = place.codec.encode(value);
    return appendFenced(bus, { subject: subjectOf(key), expectedLastSequence: revision, payload, signal });
  }

  return {
    name: `${place.bucket} ${place.prefix}`.trimEnd(),
    async read(key, signal) {
      const standing = valueMessage(await last(key, signal));
      const value = readable(standing);
      return standing === undefined || value === undefined ? undefined : { key, value, revision: standing.seq };
    },
    /** Most keys that are created have never been written, so that is tried first. */
    async create(key, value) {
      const first = await append(key, value, 0);
      if (first.kind === "appended") return first.sequence;
      const message = await last(key);
      if (valueMessage(message) !== undefined) return undefined;
      const outcome = await append(key, value, message?.seq ?? 0);
      return outcome.kind === "appended" ? outcome.sequence : undefined;
    },
    async put(key, value) {
      for (;;) {
        const outcome = await append(key, value, (await last(key))?.seq ?? 0);
        if (outcome.kind === "appended") return outcome.sequence;
      }
    },
    async update(key, decide, signal) {
      for (;;) {
        signal?.throwIfAborted();
        const message = await last(key, signal);
        const before = readable(valueMessage(message));
        const revision = before === undefined ? 0 : (message?.seq ?? 0);
        const value = decide(before, revision);
        if (value === undefined) return { before, value: before, revision, hasChanged: false };
        const outcome = await append(key, value, message?.seq ?? 0, signal);
        if (outcome.kind === "appended") return { before, value, revision: outcome.sequence, hasChanged: true };
      }
    },
    async remove(key, decide, signal) {
      for (;;) {
        const standing = valueMessage(await last(key, signal));
        if (standing === undefined) return false;
        const value = decide && readable(standing);
        if (decide && (value === undefined || !decide(value, standing.seq))) return false;
        const fenced = { subject: subjectOf(key), expectedLastSequence: standing.seq, payload: "", headers: removal };
        if ((await appendFenced(bus, { ...fenced, signal })).kind === "appended") return true;
      }
    },
    list: (part = {}) => listSubjects(bus, place, subjects, part),
    async keys(signal) {
      const keys = new Set<string>();
      for await (const message of readSubject(bus, subjects, { signal })) {
        const key = message.subject.slice(subject.length);
        if (isRemoval(message.headers)) keys.delete(key);
        else keys.add(key);
      }
      return keys;
    },
    lastRevision: (signal) => lastSequenceOf(bus, subjects, signal),
    async *follow({ fromRevision, ...options } = {}) {
      const messages = followSubject(bus, subjects, { ...options, fromSequence: fromRevision });
      for await (const message of messages) yield changeFrom(bus, place, message);
    },
  };
}

/** A key is part of a subject: with a wildcard, a read would find the value of another key. */
function isKey(key: string): boolean {
  return /^[^\s*>.]+(\.[^\s*>.]+)*$/.test(key);
}

function refuseKey(key: string): never {
  const message = `${JSON.stringify(key)} is no key: dots stand between other characters, and neither blanks, * nor > in it`;
  return refuse("invalid_argument", message, { reason: "INVALID_REQUEST" });
}

async function* listSubjects<T>(
  bus: Bus,
  place: Place<T>,
  subjects: string,
  { since, containing, where = () => true, signal }: Part<T>,
): AsyncGenerator<Stored<T>> {
  const first = since && (await firstSince(bus, subjects, since, { signal }));
  if (first === null) return;
  const standing = new Map<string, Stored<T>>();
  for await (const message of readSubject(bus, subjects, { fromSequence: first?.seq, signal })) {
    const isPart = containing === undefined || isRemoval(message.headers) || holds(message.data, containing);
    if (!isPart) continue;
    const change = changeFrom(bus, place, message);
    if (change.kind === "unreadable") continue;
    if (change.kind === "set" && where(change.value)) {
      const { key, value, revision } = change;
      standing.set(key, { key, value, revision });
    } else standing.delete(change.key);
  }
  yield* standing.values();
}

function holds({ buffer, byteOffset, length }: Uint8Array, part: Uint8Array): boolean {
  return Buffer.from(buffer, byteOffset, length).includes(Buffer.from(part));
}

function changeFrom<T>(bus: Bus, { bucket, prefix, codec }: Place<T>, message: StoredMessage): Change<T> {
  const key = message.subject.slice(`$KV.${bucket}.${prefix}`.length);
  const revision = message.sequence;
  if (isRemoval(message.headers)) return { kind: "removed", key, revision };
  const value = readRecord(bus, message, () => codec.decode(message.data));
  return value === undefined ? { kind: "unreadable", key, revision } : { kind: "set", key, value, revision };
}

/** A removal, or what the server puts in the place of a value that was too old. An empty value is one. */
function isRemoval(fields: MsgHdrs | undefined): boolean {
  return fields !== undefined && (fields.has("KV-Operation") || fields.has("Nats-Marker-Reason"));
}

/** What stands for a key, unless it was removed. */
function valueMessage(message: StoredMsg | null): StoredMsg | undefined {
  return message === null || isRemoval(message.header) ? undefined : message;
}

/** BUCKET-4: of a key that somebody asks for. */
function valueAt<T>(
  bus: Bus,
  { codec, unreadable = "lost" }: Place<T>,
  { subject, seq, data }: StoredMsg,
): T | undefined {
  if (unreadable === "absent") return readRecord(bus, { subject, sequence: seq }, () => codec.decode(data));
  try {
    return codec.decode(data);
  } catch (cause) {
    return refuse("data_loss", `what is stored under ${subject} cannot be read`, { reason: "RECORD_LOST", cause });
  }
}
