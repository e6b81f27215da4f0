import { casUpdate, readKey, removeKey } from "#runtime/bus/buckets/key-value.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import type { BucketName } from "#runtime/bus/declarations/declarations.ts";
import { readRecord } from "#runtime/bus/record.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import type { Table } from "../owners/table.ts";

export interface Codec<T> {
  encode(value: T): Uint8Array | string;
  /** Throws for what is none. */
  decode(bytes: Uint8Array): T;
}

/** A table that is a bucket. Keys are ids, which fit as they are. */
export function createBucketTable<T>(bus: Bus, bucket: BucketName, codec: Codec<T>): Table<T> {
  const read = async (key: string) => {
    const entry = await readKey(bus, bucket, key);
    return entry && { value: codec.decode(entry.value), revision: entry.revision };
  };
  return {
    read: async (key) => (await read(key))?.value,
    async change(key, decide) {
      const { result } = await casUpdate<T | undefined>(bus, bucket, key, (entry) => {
        const current = entry && codec.decode(entry.value);
        const next = decide(current);
        return next === undefined ? { keep: true, result: current } : { set: codec.encode(next), result: current };
      });
      return result;
    },
    async remove(key, isDoomed) {
      for (;;) {
        const found = await read(key);
        if (found === undefined || !isDoomed(found.value)) return;
        if (await removeKey(bus, { bucket, key, revision: found.revision })) return;
      }
    },
    async list() {
      const values: T[] = [];
      for await (const message of readSubject(bus, `$KV.${bucket}.>`)) {
        const isRemoval =
          message.headers?.has("KV-Operation") === true || message.headers?.has("Nats-Marker-Reason") === true;
        const value = isRemoval ? undefined : readRecord(bus, message, () => codec.decode(message.data));
        if (value !== undefined) values.push(value);
      }
      return values;
    },
  };
}
