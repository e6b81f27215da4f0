import type { StoredMsg } from "@nats-io/jetstream";
import { refuse } from "../../failure/failure.ts";
import type { Bus } from "../bus.ts";
import { holderHeader } from "../quota/usage.ts";
import { appendFenced, lastOf } from "../streams/append/append.ts";
import { followSubject } from "../streams/follow/follow.ts";
import { lastSequenceOf } from "../streams/read.ts";
import type { Bucket, Place } from "./bucket.ts";
import { listValues, standingMessages } from "./listing.ts";
import { changeFrom, isRemoval, valueAt, valueMessage } from "./values.ts";

/** The server keeps the message of a removal for so long, for those who follow. */
const removal = { "KV-Operation": "PURGE", "Nats-Rollup": "sub", "Nats-TTL": "60s" };

/** A kind of value in its bucket on the bus. */
export function createBucket<T>(bus: Bus, place: Place<T>): Bucket<T> {
  const subject = `$KV.${place.bucket}.${place.prefix}`;
  const subjects = `${subject}>`;
  const subjectOf = (key: string) => (isKey(key) ? subject + key : refuseKey(key));
  const last = async (key: string, signal?: AbortSignal) => lastOf(bus, subjectOf(key), { signal });
  const readable = (standing: StoredMsg | undefined) => standing && valueAt(bus, place, standing);

  /** Gives the revision of the value; undefined when the key has another one than it is to follow. */
  async function write(
    key: string,
    value: T,
    revision: number,
    more: { headers?: Record<string, string> | undefined; signal?: AbortSignal | undefined } = {},
  ): Promise<number | undefined> {
    const payload = place.codec.encode(value);
    const headers = { ...more.headers, ...(place.holderOf && holderHeader(place.holderOf(value))) };
    const fenced = { subject: subjectOf(key), expectedLastSequence: revision, payload };
    const outcome = await appendFenced(bus, { ...fenced, headers, signal: more.signal });
    return outcome.kind === "appended" ? outcome.sequence : undefined;
  }

  async function removeAt(key: string, revision: number, signal?: AbortSignal): Promise<boolean> {
    const fenced = { subject: subjectOf(key), expectedLastSequence: revision, payload: "", headers: removal };
    return (await appendFenced(bus, { ...fenced, signal })).kind === "appended";
  }

  return {
    name: `${place.bucket} ${place.prefix}`.trimEnd(),
    async read(key, signal) {
      const standing = valueMessage(await last(key, signal));
      const value = readable(standing);
      if (standing === undefined || value === undefined) return undefined;
      return { key, value, revision: standing.seq, writtenAt: standing.time };
    },
    /** Most keys that are created or put have never been written, so that is tried first. */
    async create(key, value, headers) {
      const first = await write(key, value, 0, { headers });
      if (first !== undefined) return first;
      const message = await last(key);
      return valueMessage(message) === undefined ? write(key, value, message?.seq ?? 0, { headers }) : undefined;
    },
    async put(key, value) {
      for (let standing = 0; ; standing = (await last(key))?.seq ?? 0) {
        const revision = await write(key, value, standing);
        if (revision !== undefined) return revision;
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
        const written = await write(key, value, message?.seq ?? 0, { signal });
        if (written !== undefined) return { before, value, revision: written, hasChanged: true };
      }
    },
    replace: (key, value, revision, headers) => write(key, value, revision, { headers }),
    async remove(key, when, signal) {
      if (typeof when === "number") return removeAt(key, when, signal);
      for (;;) {
        const standing = valueMessage(await last(key, signal));
        if (standing === undefined) return false;
        const value = when && readable(standing);
        if (when && (value === undefined || !when(value, standing.seq))) return false;
        if (await removeAt(key, standing.seq, signal)) return true;
      }
    },
    list: (part = {}) => listValues(bus, place, subjects, part),
    async keys(signal) {
      const keys = new Set<string>();
      for await (const message of standingMessages(bus, subjects, { signal })) {
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
