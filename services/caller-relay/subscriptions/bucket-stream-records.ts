import type { Bus } from "#runtime/bus/bus.ts";
import { casUpdate, compareAndSet, readKey, removeKey } from "#runtime/bus/key-value.ts";
import { followSubject, lastSequenceOf } from "#runtime/bus/read.ts";
import { type StreamRecord, type StreamRecords, streamRecord } from "../stream-record.ts";

const bucket = "toolbus_owners";
const kind = "caller";
const keyOf = (sessionId: string) => `${kind}.${sessionId}`;

export function createBucketStreamRecords(bus: Bus): StreamRecords {
  return {
    async read(sessionId) {
      const entry = await readKey(bus, bucket, keyOf(sessionId));
      return entry && { record: recordFromText(entry.string()), revision: entry.revision };
    },
    async put(record) {
      const set = textFromRecord(record);
      const { revision } = await casUpdate(bus, bucket, keyOf(record.sessionId), () => ({ set, result: undefined }));
      return revision;
    },
    async replace(revision, record) {
      await compareAndSet(bus, { bucket, key: keyOf(record.sessionId), revision, value: textFromRecord(record) });
    },
    async remove(sessionId, revision) {
      await removeKey(bus, { bucket, key: keyOf(sessionId), revision });
    },
  };
}

/** Each record of each session as it is written from here on, until the signal aborts. Removals are not told. */
export async function* followStreamRecords(
  bus: Bus,
  signal: AbortSignal,
): AsyncGenerator<{ record: StreamRecord; revision: number }> {
  const subject = `$KV.${bucket}.${kind}.*`;
  const last = await lastSequenceOf(bus, subject, signal);
  for await (const message of followSubject(bus, subject, { fromSequence: last + 1, signal })) {
    if (message.data.length === 0) continue;
    yield { record: recordFromText(new TextDecoder().decode(message.data)), revision: message.sequence };
  }
}

function textFromRecord(record: StreamRecord): string {
  return JSON.stringify(record);
}

function recordFromText(text: string): StreamRecord {
  return streamRecord.parse(JSON.parse(text));
}
