import type { Bucket, Found } from "../bucket.ts";
import { sharedReading } from "./shared-reading.ts";

/** The bucket, in which all who ask for one key at the same time share its readings; BUCKET-3 holds for each of them. */
export function withSharedReads<T>(bucket: Bucket<T>): Bucket<T> {
  const readings = new Map<string, { readonly read: () => Promise<Found<T> | undefined>; waiting: number }>();

  async function read(key: string): Promise<Found<T> | undefined> {
    const reading = readings.get(key) ?? { read: sharedReading(() => bucket.read(key)), waiting: 0 };
    readings.set(key, reading);
    reading.waiting += 1;
    try {
      return await reading.read();
    } finally {
      reading.waiting -= 1;
      if (reading.waiting === 0) readings.delete(key);
    }
  }

  // who may give up waits for a reading of its own
  return { ...bucket, read: (key, signal) => (signal === undefined ? read(key) : bucket.read(key, signal)) };
}
