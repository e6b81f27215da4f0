import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { StoredMsg } from "@nats-io/jetstream";
import { QueuedRunSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import { type RunEvent, RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type WatchRunResponse, WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { appendFenced, firstAfter, lastOf } from "#runtime/bus/append.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { maxMessageBytes } from "#runtime/bus/message-size.ts";
import { PlainHeaders } from "#runtime/bus/plain-headers.ts";
import { readSubject } from "#runtime/bus/read.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { RunKeys } from "../run/acceptance.ts";
import type { RunLog, StoredEvent } from "../run/journal.ts";
import { refuseTooLargeEvent } from "../run/too-large.ts";
import { runSubjects } from "./run-subjects.ts";

export const positionHeader = "Toolbus-Position";

/** What the headers of an append take at most. */
const headerBytes = 512;

/** By so much the end of a run may be larger than the turn whose text it repeats: its error, and the headers. */
const endReserveBytes = 16 * 1_024;

/** The logs of runs in their stream. What was stored is told to the run's watchers. */
export function createStreamRunLog(bus: Bus): RunLog {
  const bytesByEvent = new WeakMap<RunEvent, Uint8Array>();

  /** An event is checked, stored and told: it is encoded once. */
  function bytesOf(event: RunEvent): Uint8Array {
    const made = bytesByEvent.get(event) ?? toBinary(RunEventSchema, event);
    bytesByEvent.set(event, made);
    return made;
  }

  function limitOf(runId: string, isEnd = false): number {
    return maxMessageBytes(bus, runSubjects.log(runId)) - (isEnd ? headerBytes : endReserveBytes);
  }

  return {
    check(event) {
      refuseTooLargeEvent(event, bytesOf(event).length, limitOf(event.runId, event.event.case === "ended"));
    },
    maxEventBytes: (runId) => limitOf(runId),
    async read(runId, afterPosition) {
      const stored: StoredEvent[] = [];
      const options = { fromSequence: afterPosition + 1 };
      for await (const { data, sequence } of readSubject(bus, runSubjects.log(runId), options)) {
        stored.push({ event: fromBinary(RunEventSchema, data), position: sequence });
      }
      return stored;
    },
    first: async (runId) => eventFromStored(await firstAfter(bus, runSubjects.log(runId), 0)),
    last: async (runId) => eventFromStored(await lastOf(bus, runSubjects.log(runId))),
    async append(event, position) {
      const outcome = await appendFenced(bus, {
        subject: runSubjects.log(event.runId),
        expectedLastSequence: position,
        payload: bytesOf(event),
      });
      if (outcome.kind === "conflict") return outcome;
      publishLive(bus, event.runId, updateFromEventBytes(bytesOf(event)), outcome.sequence);
      return { kind: "appended", position: outcome.sequence };
    },
  };
}

function eventFromStored(message: StoredMsg | null): StoredEvent | undefined {
  return message === null ? undefined : { event: fromBinary(RunEventSchema, message.data), position: message.seq };
}

/** Told once to whoever listens: what gets lost, or is too large to be told, is found in the log or asked for. */
export function tellLive(bus: Bus, runId: string, update: WatchRunResponse): void {
  publishLive(bus, runId, toBinary(WatchRunResponseSchema, update));
}

/** The bytes of a `WatchRunResponse` with this event, whose bytes are there already. */
function updateFromEventBytes(event: Uint8Array): Uint8Array {
  const { number } = WatchRunResponseSchema.field.event;
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(event).finish();
}

function publishLive(bus: Bus, runId: string, payload: Uint8Array, position?: number): void {
  if (payload.length > (bus.connection.info?.max_payload ?? Number.POSITIVE_INFINITY) - headerBytes) return;
  const fields = position === undefined ? undefined : new PlainHeaders().add(positionHeader, String(position));
  bus.connection.publish(runSubjects.live(runId), payload, fields && { headers: fields });
}

export function createStreamRunKeys(bus: Bus): RunKeys {
  async function find(sessionId: string, key: string): Promise<string | undefined> {
    const first = await firstAfter(bus, runSubjects.key(sessionId, key), 0);
    return first === null ? undefined : fromBinary(QueuedRunSchema, first.data).runId;
  }

  return {
    find,
    async take(sessionId, key, runId) {
      const subject = runSubjects.key(sessionId, key);
      const payload = toBinary(QueuedRunSchema, create(QueuedRunSchema, { sessionId, runId }));
      const outcome = await appendFenced(bus, { subject, expectedLastSequence: 0, payload });
      if (outcome.kind === "appended") return runId;
      const found = await find(sessionId, key);
      return (
        found ??
        refuse("data_loss", `an idempotency key of session ${sessionId} has vanished`, { reason: "RECORD_LOST" })
      );
    },
  };
}
