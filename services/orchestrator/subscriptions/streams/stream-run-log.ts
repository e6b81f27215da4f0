import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { StoredMsg } from "@nats-io/jetstream";
import { QueuedRunSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import { StoredRunEventSchema } from "#gen/toolbus/internal/run/v1/run_log_pb.ts";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type WatchRunResponse, WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { PlainHeaders } from "#runtime/bus/nats-patches/plain-headers.ts";
import { appendFenced, firstAfter, lastOf } from "#runtime/bus/streams/append/append.ts";
import { maxMessageBytes } from "#runtime/bus/streams/message-size.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import { type RecordPlace, readRecord } from "#runtime/bus/streams/record.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { RunLog } from "../../log/journal.ts";
import type { LogRecord, StoredEvent } from "../../log/state/log-record.ts";
import { refuseTooLargeEvent } from "../../log/too-large.ts";
import type { RunKeys, TakenKey } from "../../runs/create/acceptance.ts";
import { runSubjects } from "../run-subjects.ts";

export const positionHeader = "Toolbus-Position";
/** The process of a claim that is published live. Services ask it for snapshots; clients do not get it. */
export const instanceHeader = "Toolbus-Instance";

/** What the headers of an append take at most. */
const headerBytes = 512;

/** By so much the end of a run may be larger than the turn whose text it repeats: its error, and the headers. */
const endReserveBytes = 16 * 1_024;

/** The logs of runs in their stream. Stored events are published to the run's watchers. */
export function createStreamRunLog(bus: Bus): RunLog {
  const bytesByRecord = new WeakMap<LogRecord, RecordBytes>();

  /** A record is checked, stored and published: its event is encoded once. */
  const bytesOf = (record: LogRecord) => getOrInsertComputed(bytesByRecord, record, encoded);

  function limitOf(runId: string, isEnd = false): number {
    return maxMessageBytes(bus, runSubjects.log(runId)) - (isEnd ? headerBytes : endReserveBytes);
  }

  async function read(runId: string, afterPosition: number) {
    const records: StoredEvent[] = [];
    let position = afterPosition;
    const from = { fromSequence: afterPosition + 1, isThere: afterPosition === 0 };
    for await (const message of readSubject(bus, runSubjects.log(runId), from)) {
      position = message.sequence;
      const record = recordFrom(bus, message);
      if (record !== undefined) records.push(record);
    }
    return { records, position };
  }

  return {
    check(record) {
      const { event } = record;
      refuseTooLargeEvent(event, bytesOf(record).stored.length, limitOf(event.runId, event.event.case === "ended"));
    },
    maxEventBytes: (runId) => limitOf(runId),
    read,
    async first(runId, afterPosition = 0) {
      for (let position = afterPosition; ; ) {
        const message = await firstAfter(bus, runSubjects.log(runId), position);
        if (message === null) return undefined;
        const record = recordFrom(bus, placed(message));
        if (record !== undefined) return record;
        position = message.seq;
      }
    },
    async last(runId) {
      const message = await lastOf(bus, runSubjects.log(runId));
      if (message === null) return undefined;
      return recordFrom(bus, placed(message)) ?? (await read(runId, 0)).records.at(-1);
    },
    async append(record, position) {
      const { runId, event } = record.event;
      const { stored, told } = bytesOf(record);
      const outcome = await appendFenced(bus, {
        subject: runSubjects.log(runId),
        expectedLastSequence: position,
        payload: stored,
      });
      if (outcome.kind === "conflict") return outcome;
      const fields = new PlainHeaders().add(positionHeader, String(outcome.sequence));
      if (event.case === "claimed") fields.add(instanceHeader, record.instance);
      publishLive(bus, runId, updateFromEventBytes(told), fields);
      return { kind: "appended", position: outcome.sequence };
    },
  };
}

/** A record as it is stored, and the event in it as it is published. */
interface RecordBytes {
  readonly stored: Uint8Array;
  readonly told: Uint8Array;
}

/** The bytes of a `StoredRunEvent`, whose event is encoded by itself. */
function encoded({ event, epoch, instance }: LogRecord): RecordBytes {
  const { field } = StoredRunEventSchema;
  const told = toBinary(RunEventSchema, event);
  const writer = new BinaryWriter().tag(field.event.number, WireType.LengthDelimited).bytes(told);
  if (epoch > 0) writer.tag(field.epoch.number, WireType.Varint).uint32(epoch);
  if (instance !== "") writer.tag(field.instance.number, WireType.LengthDelimited).string(instance);
  return { stored: writer.finish(), told };
}

export type RecordMessage = RecordPlace & { readonly data: Uint8Array };

export function placed({ subject, seq, data }: StoredMsg): RecordMessage {
  return { subject, sequence: seq, data };
}

/** Undefined for what nobody can read. */
export function recordFrom(bus: Bus, message: RecordMessage): StoredEvent | undefined {
  return readRecord(bus, message, () => {
    const { event, epoch, instance } = fromBinary(StoredRunEventSchema, message.data);
    return event && { event, epoch, instance, position: message.sequence };
  });
}

/** Published once: what gets lost, or is too large, is read from the log or requested. */
export function publishUpdate(bus: Bus, runId: string, update: WatchRunResponse): void {
  publishLive(bus, runId, toBinary(WatchRunResponseSchema, update));
}

/** The bytes of a `WatchRunResponse` with this event, whose bytes are there already. */
function updateFromEventBytes(event: Uint8Array): Uint8Array {
  const { number } = WatchRunResponseSchema.field.event;
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(event).finish();
}

function publishLive(bus: Bus, runId: string, payload: Uint8Array, fields?: PlainHeaders): void {
  if (payload.length > (bus.connection.info?.max_payload ?? Number.POSITIVE_INFINITY) - headerBytes) return;
  bus.connection.publish(runSubjects.live(runId), payload, fields && { headers: fields });
}

export function createStreamRunKeys(bus: Bus): RunKeys {
  async function find(sessionId: string, key: string): Promise<TakenKey | undefined> {
    const first = await firstAfter(bus, runSubjects.key(sessionId, key), 0);
    return first === null
      ? undefined
      : { runId: fromBinary(QueuedRunSchema, first.data).runId, keyPosition: first.seq };
  }

  return {
    find: async (...names) => (await find(...names))?.runId,
    async take(sessionId, key, runId) {
      const subject = runSubjects.key(sessionId, key);
      const payload = toBinary(QueuedRunSchema, create(QueuedRunSchema, { sessionId, runId }));
      const outcome = await appendFenced(bus, { subject, expectedLastSequence: 0, payload });
      if (outcome.kind === "appended") return { runId, keyPosition: outcome.sequence };
      const found = await find(sessionId, key);
      return (
        found ??
        refuse("data_loss", `an idempotency key of session ${sessionId} has vanished`, { reason: "RECORD_LOST" })
      );
    },
  };
}
