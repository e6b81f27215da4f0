import { casUpdate, compareAndSet, readKey, removeKey } from "#runtime/bus/buckets/key-value.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { type RecordPlace, readRecord } from "#runtime/bus/record.ts";
import type { StoredMessage } from "#runtime/bus/streams/read.ts";
import { type FoundRecord, type StreamRecord, type StreamRecords, streamRecord } from "../streams/stream-record.ts";

const bucket = "toolbus_owners";
const kind = "caller";
const keyOf = (sessionId: string) => `${kind}.${sessionId}`;
const subjectOf = (sessionId: string) => `$KV.${bucket}.${keyOf(sessionId)}`;

export function createBucketStreamRecords(bus: Bus): StreamRecords {
  return {
    async read(sessionId) {
      const entry = await readKey(bus, bucket, keyOf(sessionId));
      return entry && recordAt(bus, { subject: subjectOf(sessionId), sequence: entry.revision, data: entry.value });
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

/** Under which the record of each session's stream stands. */
export const recordsSubject = `$KV.${bucket}.${keyOf("*")}`;

/** What was written there; undefined for a removal, and for what cannot be read: that is nobody's stream. */
export function recordFromMessage(bus: Bus, message: StoredMessage): FoundRecord | undefined {
  return message.data.length === 0 ? undefined : recordAt(bus, message);
}

function recordAt(bus: Bus, message: RecordPlace & { readonly data: Uint8Array }): FoundRecord | undefined {
  const parse = () => streamRecord.parse(JSON.parse(new TextDecoder().decode(message.data)));
  const record = readRecord(bus, message, parse);
  return record && { record, revision: message.sequence };
}

function textFromRecord(record: StreamRecord): string {
  return JSON.stringify(record);
}
