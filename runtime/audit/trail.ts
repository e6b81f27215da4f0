import { create, fromJsonString, type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { nuid } from "@nats-io/nats-core";
import { type AuditEvent, AuditEventSchema, AuditKindSchema } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { appendOnce, firstSince } from "../bus/append.ts";
import type { Bus } from "../bus/bus.ts";
import { followSubject, lastSequenceOf, readSubject, type StoredMessage } from "../bus/read.ts";

/** Puts decisions on the audit trail. Disposing waits until what was recorded is stored. */
export interface AuditTrail extends AsyncDisposable {
  /** Returns at once: a decision does not wait for its record, nor fail with it. Time and service are filled in. */
  record(event: MessageInitShape<typeof AuditEventSchema>): void;
}

export interface AuditTrailOptions {
  /** Told of an event that could not be stored within its time. */
  onLost?: (event: AuditEvent, error: unknown) => void;
}

const MAX_MESSAGE_CHARACTERS = 16_384;
const MAX_UNSTORED = 10_000;
const ALL_EVENTS = "toolbus.audit.>";

export function openAuditTrail(bus: Bus, service: string, options: AuditTrailOptions = {}): AuditTrail {
  const unstored = new Set<Promise<void>>();

  async function store(event: AuditEvent): Promise<void> {
    const kind = AuditKindSchema.value[event.kind]?.localName.toLowerCase() ?? "unknown";
    const payload = toJsonString(AuditEventSchema, event);
    try {
      if (unstored.size >= MAX_UNSTORED) throw new Error(`${MAX_UNSTORED} events wait to be stored`);
      await appendOnce(bus, { subject: `toolbus.audit.${service}.${kind}`, payload, messageId: nuid.next() });
    } catch (error) {
      options.onLost?.(event, error);
    }
  }

  return {
    record(init) {
      const message = (init.message ?? "").slice(0, MAX_MESSAGE_CHARACTERS);
      const event = create(AuditEventSchema, { ...init, message, service, time: timestampFromMs(Date.now()) });
      const stored = store(event).finally(() => unstored.delete(stored));
      unstored.add(stored);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(unstored);
    },
  };
}

/** Events from a sequence on, and then as they come; 0 for those from now on. Ends quietly when the signal aborts. */
export async function* followAudit(bus: Bus, fromSequence: number, signal: AbortSignal): AsyncGenerator<AuditEvent> {
  const first = fromSequence > 0 ? fromSequence : (await lastSequenceOf(bus, ALL_EVENTS, signal)) + 1;
  for await (const message of followSubject(bus, ALL_EVENTS, { fromSequence: first, signal })) {
    yield eventFromMessage(message);
  }
}

/** The sequence of the first event that was stored at a time or after it; what comes next when there is none. */
export async function auditSequenceSince(bus: Bus, time: Date, signal: AbortSignal): Promise<number> {
  const first = await firstSince(bus, ALL_EVENTS, time, { signal });
  return first?.seq ?? (await lastSequenceOf(bus, ALL_EVENTS, signal)) + 1;
}

const WINDOW = 1_000;

/** Past events before a sequence, the latest first; 0 for all. */
export async function* readAuditBackwards(
  bus: Bus,
  beforeSequence: number,
  signal: AbortSignal,
): AsyncGenerator<AuditEvent> {
  const first = (await bus.manager.streams.info("TOOLBUS_AUDIT")).state.first_seq;
  let before = beforeSequence > 0 ? beforeSequence : (await lastSequenceOf(bus, ALL_EVENTS, signal)) + 1;
  while (before > first) {
    const fromSequence = Math.max(first, before - WINDOW);
    const window: StoredMessage[] = [];
    for await (const message of readSubject(bus, ALL_EVENTS, { fromSequence, signal })) {
      if (message.sequence >= before) break;
      window.push(message);
    }
    for (const message of window.reverse()) yield eventFromMessage(message);
    before = fromSequence;
  }
}

function eventFromMessage({ data, sequence }: StoredMessage): AuditEvent {
  const event = fromJsonString(AuditEventSchema, new TextDecoder().decode(data), { ignoreUnknownFields: true });
  return { ...event, sequence: BigInt(sequence) };
}
