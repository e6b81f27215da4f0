import { createKey, readKey, removeKey } from "#runtime/bus/buckets/key-value.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { readRecord } from "#runtime/bus/record.ts";
import { type LateRequests, lateRequest } from "../requests/late-requests.ts";

const bucket = "toolbus_callers";
const keyOf = (sessionId: string, requestId: string) => `late.${sessionId}.${requestId}`;

export function createBucketLateRequests(bus: Bus): LateRequests {
  return {
    async write(sessionId, requestId, late) {
      await createKey(bus, { bucket, key: keyOf(sessionId, requestId), value: JSON.stringify(late) }); // written twice is written
    },
    async read(sessionId, requestId) {
      const key = keyOf(sessionId, requestId);
      const entry = await readKey(bus, bucket, key);
      if (entry === undefined) return undefined;
      const place = { subject: `$KV.${bucket}.${key}`, sequence: entry.revision };
      return readRecord(bus, place, () => lateRequest.parse(entry.json()));
    },
    async remove(sessionId, requestId) {
      const key = keyOf(sessionId, requestId);
      const entry = await readKey(bus, bucket, key);
      if (entry) await removeKey(bus, { bucket, key, revision: entry.revision });
    },
  };
}
