import type { Bus } from "#runtime/bus/bus.ts";
import { casUpdate, compareAndSet, readKey, removeKey } from "#runtime/bus/key-value.ts";
import type { StoredMessage } from "#runtime/bus/read.ts";
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

/** Under which the record of each session's stream stands. */
export const recordsSubject = `$KV.${bucket}.${keyOf("*")}`;

/** What was written there; undefined for a removal. */
export function recordFromMessage({
  data,
  sequence,
}: StoredMessage): { record: StreamRecord; revision: number } | undefined {
  if (data.length === 0) return undefined;
  return { record: recordFromText(new TextDecoder().decode(data)), revision: sequence };
}

function textFromRecord(record: StreamRecord): string {
  return JSON.stringify(record);
}

function recordFromText(text: string): StreamRecord {
  return streamRecord.parse(JSON.parse(text));
}
