import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { isPassing } from "#runtime/bus/jetstream-errors.ts";
import { retryOnBus } from "#runtime/bus/link.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import { readRecord } from "#runtime/bus/streams/record.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { RetentionStore } from "../../calls/due-work/retention.ts";
import { decodeCall, encodeCall } from "../../calls/records/call-record.ts";

const bucket = "toolbus_calls";
const place = { bucket, prefix: "", codec: { encode: encodeCall, decode: decodeCall } } as const;
const stream = `KV_${bucket}`;

export function createRetentionStore(bus: Bus): RetentionStore {
  const calls = createBucket(bus, place);

  /** The marker of a removal needs room itself; without any the record goes at once, as far as it is the one that was read. */
  async function purge(callId: string, revision: number): Promise<boolean> {
    const request = { filter: `$KV.${bucket}.${callId}`, seq: revision + 1 };
    const remove = () => bus.manager.streams.purge(stream, request);
    const { purged } = await retryOnBus(bus.link, remove, { what: `removing call ${callId}`, isPassing });
    return purged > 0;
  }

  return {
    async filled() {
      const ask = () => bus.manager.streams.info(stream);
      const { state, config } = await retryOnBus(bus.link, ask, { what: "measuring the room of calls", isPassing });
      return state.bytes / config.max_bytes;
    },
    async *records(signal) {
      for await (const message of readSubject(bus, `$KV.${bucket}.>`, { signal })) {
        const { data, sequence, time } = message;
        const record = data.length > 0 && readRecord(bus, message, () => decodeCall(data));
        if (record) yield { record, revision: sequence, writtenMs: time.getTime() };
      }
    },
    async remove({ record: { callId }, revision }) {
      try {
        return await calls.remove(callId, revision);
      } catch (error) {
        if (error instanceof Failure && error.reason === "STORE_FULL") return purge(callId, revision);
        throw error;
      }
    },
  };
}
