import { type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import type { BucketName } from "../declarations/declarations.ts";
import type { FollowOptions as FollowStreamOptions } from "../streams/follow/follow.ts";

/*
 * Values of one kind in a key-value bucket: read, changed by compare-and-set, listed and followed. `createBucket` opens one on the
 * bus, `BucketView` keeps one in memory, `createMemoryBucket` is one for tests.
 *
 * BUCKET-1  A revision is the place of a value in its stream: it grows with each write of whatever key. 0 is that of a key without a
 *           value.
 * BUCKET-2  Every write names the revision that it follows, so that of all who decided on the same value one is stored. The others
 *           read and decide again: a decision has no effects. A refusal that it throws is the answer.
 * BUCKET-3  Reads come from the leader and see every write that was acknowledged.
 * BUCKET-4  A value that cannot be read, as of a newer release, is told in the log, once. Lists pass over it, a view keeps what it
 *           knew. Who asks for its key is told `data_loss`, and no decision writes over it; unless its place says that it then
 *           stands for nothing. `put`, and a removal without a decision, do not look at what stands.
 * BUCKET-5  What a newer release wrote beside what this one knows goes with the value, and is written again with it.
 * BUCKET-6  The loss of the server interrupts and ends nothing. Followers go on where they stood and miss no value. A removal leaves
 *           a message for a minute alone: after an interruption `keys` tells what stands.
 */

export interface Bucket<T> {
  /** As errors name it. */
  readonly name: string;
  read(key: string, signal?: AbortSignal): Promise<Found<T> | undefined>;
  /** The revision, or undefined when the key has a value already. `headers` are for who reads the stream of the bucket. */
  create(key: string, value: T, headers?: Record<string, string>): Promise<number | undefined>;
  /** Writes the value in place of whatever stands; gives the revision. */
  put(key: string, value: T): Promise<number>;
  /** Writes what `decide` gives for what stands and its revision; undefined keeps it. */
  update(
    key: string,
    decide: (value: T | undefined, revision: number) => T | undefined,
    signal?: AbortSignal,
  ): Promise<Update<T>>;
  /** Writes the value if the key still has the revision, for who has read it; gives the new one, undefined when it has another. */
  replace(key: string, value: T, revision: number, headers?: Record<string, string>): Promise<number | undefined>;
  /** Removes the value, whatever it is, or if it has that revision, or if the decision agrees; false when nothing was removed. */
  remove(
    key: string,
    when?: number | ((value: T, revision: number) => boolean),
    signal?: AbortSignal,
  ): Promise<boolean>;
  /** All values that stand from the beginning of the list to its end, or a part of them. */
  list(part?: Part<T>): AsyncIterable<Found<T>>;
  /** The keys that have a value, whether or not it can be read. */
  keys(signal?: AbortSignal): Promise<Set<string>>;
  /** Of the last change of any key of this kind; 0 before the first. */
  lastRevision(signal?: AbortSignal): Promise<number>;
  /** What stands, then each change, in order, until the signal aborts, which ends it quietly. */
  follow(options: FollowOptions): AsyncIterable<Change<T>>;
}

export interface Stored<T> {
  key: string;
  value: T;
  revision: number;
}

export interface Found<T> extends Stored<T> {
  readonly writtenAt: Date;
}

interface Update<T> {
  before: T | undefined;
  /** What stands after the update; undefined when there was nothing and nothing was written. */
  value: T | undefined;
  revision: number;
  hasChanged: boolean;
}

/** What of a bucket is listed. */
export interface Part<T> {
  where?: ((value: T) => boolean) | undefined;
  signal?: AbortSignal | undefined;
}

export type Change<T> =
  | ({ kind: "set" } & Stored<T>)
  | { kind: "removed"; key: string; revision: number }
  | { kind: "unreadable"; key: string; revision: number };

/** From an interruption on removals may be missed, until it is resumed (BUCKET-6). */
export interface FollowOptions extends Omit<FollowStreamOptions, "fromSequence"> {
  /** The first of interest; all that stands unless told. */
  fromRevision?: number | undefined;
}

/** Where values of one kind lie. */
export interface Place<T> {
  readonly bucket: BucketName;
  /** What their keys begin with there, up to the dot; empty where they have the bucket to themselves. */
  readonly prefix: string;
  readonly codec: Codec<T>;
  /** Whose a value is, where principals have shares of the bucket. */
  readonly holderOf?: (value: T) => string;
  /** What a value that cannot be read is to who asks for its key: `lost` unless told. */
  readonly unreadable?: "lost" | "absent";
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

/** Of what is stored as JSON; `parse` throws for what is none of the kind. */
export function jsonCodec<T>(parse: (value: unknown) => T): Codec<T> {
  return {
    encode: (value) => new TextEncoder().encode(JSON.stringify(value)),
    decode: (bytes) => parse(JSON.parse(new TextDecoder().decode(bytes))),
  };
}

export const textCodec: Codec<string> = {
  encode: (value) => new TextEncoder().encode(value),
  decode: (bytes) => new TextDecoder().decode(bytes),
};
