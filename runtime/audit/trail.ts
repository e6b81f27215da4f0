import { hash } from "node:crypto";
import {
  create,
  fromJson,
  fromJsonString,
  type JsonValue,
  type MessageInitShape,
  toJsonString,
} from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { nuid } from "@nats-io/nats-core";
import { type AuditEvent, AuditEventSchema, AuditKindSchema } from "#gen/toolbus/audit/v1/audit_pb.ts";
import type { Bus } from "../bus/bus.ts";
import { openEviction } from "../bus/quota/eviction.ts";
import { appendOnce, firstSince } from "../bus/streams/append/append.ts";
import { followLog } from "../bus/streams/follow/follow-log.ts";
import { boundsOf, lastSequenceOf, readSubject, type StoredMessage } from "../bus/streams/read.ts";
import { readRecord } from "../bus/streams/record.ts";
import { getOrInsertComputed } from "../collections/get-or-insert-computed.ts";
import { BoundedMap } from "../collections/maps/bounded-map.ts";
import { requireReached } from "../failure/sequence.ts";
import type { OperatorLog } from "../lifecycle/logger.ts";
import { openSlices } from "../rpc/handling/messages/slices.ts";
import { type Caller, principalOf } from "../rpc/identity.ts";
import { gapUpdate, type LogUpdate, startUpdate } from "../rpc/watching/log-update.ts";
import { enumWord } from "../schema/enum-word.ts";

/*
 * Decisions are many and small, so a message of the stream holds those of one service, kind and principal that fell within a moment, a
 * line of JSON each, and one acknowledgement is for all of them.
 *
 * trail-1  Messages of a principal are sent in the order of what was recorded: another kind begins another message.
 * trail-2  An event's place in the trail, its `sequence`, is that of its message and its line in it.
 * trail-3  A trail whose first event comes after a time does not reach back to it: what was removed may have come after it too.
 * trail-4  Whose a message is stands in its subject, so that who fills the trail loses events of its own (SEC-6).
 */

/** Puts decisions on the audit trail. Disposing waits until what was recorded is stored. */
export interface AuditTrail extends AsyncDisposable {
  /**
   * Returns at once: a decision does not wait for its record, nor fail with it. Time and service are filled in, and the principal
   * on whose behalf it is, unless the event names another.
   */
  record(event: MessageInitShape<typeof AuditEventSchema>, principal?: string): void;
}

export type Audit = AuditTrail["record"];

/** Tells what somebody did (ORCH-11). */
export function auditAct(audit: Audit, caller: Caller, event: Parameters<Audit>[0], did: string): void {
  const by = principalOf(caller);
  audit({ ...event, message: `${did} by ${by}` }, by);
}

interface Batch {
  readonly kind: AuditEvent["kind"];
  readonly principal: string;
  readonly events: AuditEvent[];
  readonly lines: string[];
  bytes: number;
}

const MAX_MESSAGE_CHARACTERS = 16_384;
const MAX_UNSTORED = 10_000;
const GATHER_MS = 25;
const MOST_LINES = 500;
/** Of what the stream takes in a message, with room for one more event. */
const FULL_BYTES = 128 * 1_024;
const PLACES_PER_MESSAGE = 1_000;
const ALL_EVENTS = "toolbus.audit.>";

/** The logger is told of each event that could not be stored within its time. */
export function openAuditTrail(bus: Bus, service: string, logger?: Pick<OperatorLog, "error">): AuditTrail {
  const onLost = (event: AuditEvent, err: unknown) => logger?.error({ event, err }, "an audit event was lost");
  const storing = new Set<Promise<void>>();
  let unstored = 0;
  const batches = new Map<string, Batch>();
  let timer: NodeJS.Timeout | undefined;

  async function store({ kind, principal, events, lines }: Batch): Promise<void> {
    try {
      const subject = `toolbus.audit.${service}.${enumWord(AuditKindSchema, kind)}${holderToken(principal)}`;
      await appendOnce(bus, { subject, payload: lines.join("\n"), messageId: nuid.next() });
    } catch (error) {
      for (const event of events) onLost(event, error);
    }
    unstored -= events.length;
  }

  function send(batch: Batch): void {
    batches.delete(batch.principal);
    const stored = store(batch).finally(() => storing.delete(stored));
    storing.add(stored);
  }

  function sendAll(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const batch of batches.values()) send(batch);
  }

  function gather(event: AuditEvent, principal: string): void {
    const line = toJsonString(AuditEventSchema, event);
    const begun = batches.get(principal);
    if (begun !== undefined && (begun.kind !== event.kind || isFull(begun))) send(begun); // trail-1
    const batch = batches.get(principal) ?? { kind: event.kind, principal, events: [], lines: [], bytes: 0 };
    batches.set(principal, batch);
    batch.events.push(event);
    batch.lines.push(line);
    batch.bytes += Buffer.byteLength(line) + 1;
    unstored += 1;
    timer ??= setTimeout(sendAll, GATHER_MS);
  }

  return {
    record(init, principal = "") {
      const message = (init.message ?? "").slice(0, MAX_MESSAGE_CHARACTERS);
      const filled = { principal, ...init, message, service, createTime: timestampFromMs(Date.now()) };
      const event = wellFormed(create(AuditEventSchema, filled));
      if (unstored < MAX_UNSTORED) gather(event, principal);
      else onLost(event, new Error(`${MAX_UNSTORED} events wait to be stored`));
    },
    async [Symbol.asyncDispose]() {
      sendAll();
      await Promise.all(storing);
    },
  };
}

/** trail-4: names may hold what subjects may not. */
function holderToken(principal: string): string {
  return principal === "" ? "" : `.${hash("sha256", principal, "hex").slice(0, 16)}`;
}

/** trail-4 */
export const AUDIT_EVICTION = { stream: "TOOLBUS_AUDIT", holderOf: (subject: string) => subject.split(".")[4] ?? "" };

/** trail-4: evicts events while room is short, the oldest of those whose events take the most. */
export function openAuditEviction(bus: Bus, onFault: (fault: string) => void): AsyncDisposable {
  return openEviction(bus, { ...AUDIT_EVICTION, holds: "audit events", onFault });
}

function isFull({ lines, bytes }: Batch): boolean {
  return lines.length >= MOST_LINES || bytes >= FULL_BYTES;
}

export interface FollowAudit {
  /** The first place that is wanted; 0 for all, absent for those from now on. */
  from: bigint | undefined;
  /** The place of the first event at or after a time (`auditSequenceSince`): what is before it is passed over. */
  notBefore?: number;
  /** As those of `readAuditBackwards`. */
  words?: readonly string[];
  signal: AbortSignal;
}

/** What stands from a place on, and then what comes. Ends quietly when the signal aborts. */
export async function* followAudit(bus: Bus, options: FollowAudit): AsyncGenerator<LogUpdate<AuditEvent>> {
  const { from: asked, notBefore = 0, words, signal } = options;
  const bounds = await boundsOf(bus, ALL_EVENTS, signal);
  const next = placeOf(bounds.next);
  requireReached("the audit trail", asked ?? 0n, BigInt(next));
  const first = Math.max(Number(asked ?? next), notBefore > placeOf(bounds.first) ? notBefore : 0); // trail-3
  if (asked === undefined) yield startUpdate(BigInt(next));
  const log = { kind: "dense", from: messageOf(first), signal, ...bounds } as const;
  const nextStep = openSlices();
  for await (const step of followLog(bus, ALL_EVENTS, log)) {
    await nextStep();
    if (step.kind === "gap") {
      yield gapUpdate(BigInt(Math.max(first, placeOf(step.first))), BigInt(placeOf(step.last + 1) - 1)); // trail-2
      continue;
    }
    for (const event of followedEvents(bus, step.message, words)) {
      if (event.sequence >= first) yield { case: "event", value: event };
    }
  }
}

/** What the messages hold that were read last, for whoever else follows: to read one takes far longer than to pass it on. */
const readLast = new WeakMap<Bus, BoundedMap<string, readonly AuditEvent[]>>();
const MOST_READ = 64;

function followedEvents(bus: Bus, message: StoredMessage, words?: readonly string[]): readonly AuditEvent[] {
  const read = getOrInsertComputed(readLast, bus, () => new BoundedMap(MOST_READ));
  const key = JSON.stringify([message.sequence, message.time, words]);
  return getOrInsertComputed(read, key, () => eventsFromMessage(bus, message, words));
}

/** The place of the first event that was stored at a time or after it; what comes next when there is none. */
export async function auditSequenceSince(bus: Bus, time: Date, signal: AbortSignal): Promise<number> {
  const first = await firstSince(bus, ALL_EVENTS, time, { signal });
  return placeOf(first?.seq ?? (await lastSequenceOf(bus, ALL_EVENTS, signal)) + 1);
}

const WINDOW = 1_000;

/** Past events before a place, the latest first; 0 for all. One in whose line a word is lacking is told by its place alone, which is sooner said. */
export async function* readAuditBackwards(
  bus: Bus,
  beforeSequence: number,
  signal: AbortSignal,
  words: readonly string[] = [],
): AsyncGenerator<AuditEvent> {
  const first = (await bus.manager.streams.info("TOOLBUS_AUDIT")).state.first_seq;
  const isAll = beforeSequence === 0;
  let before = isAll ? (await lastSequenceOf(bus, ALL_EVENTS, signal)) + 1 : messageOf(beforeSequence - 1) + 1;
  const nextStep = openSlices();
  while (before > first) {
    const fromSequence = Math.max(first, before - WINDOW);
    const window: StoredMessage[] = [];
    for await (const message of readSubject(bus, ALL_EVENTS, { fromSequence, signal })) {
      if (message.sequence >= before) break;
      window.push(message);
    }
    for (const message of window.reverse()) {
      await nextStep();
      for (const event of eventsFromMessage(bus, message, words).reverse()) {
        if (isAll || event.sequence < beforeSequence) yield event;
      }
    }
    before = fromSequence;
  }
}

/** trail-2 */
function placeOf(messageSequence: number, line = 0): number {
  return messageSequence * PLACES_PER_MESSAGE + line;
}

function messageOf(place: number): number {
  return Math.floor(place / PLACES_PER_MESSAGE);
}

function eventsFromMessage(bus: Bus, message: StoredMessage, words: readonly string[] = []): AuditEvent[] {
  const lines = new TextDecoder().decode(message.data).split("\n");
  return lines.flatMap((text, line) => {
    const hasAll = words.every((word) => text.includes(word));
    const event = hasAll ? readRecord(bus, message, () => eventFromLine(text)) : create(AuditEventSchema);
    return event ? [{ ...event, sequence: BigInt(placeOf(message.sequence, line)) }] : [];
  });
}

function eventFromLine(text: string): AuditEvent {
  const options = { ignoreUnknownFields: true };
  if (!/\\u[dD]/.test(text)) return fromJsonString(AuditEventSchema, text, options);
  const mended: JsonValue = JSON.parse(text, (_, value) => (typeof value === "string" ? value.toWellFormed() : value));
  return fromJson(AuditEventSchema, mended, options); // half of a pair of surrogates stands as an escape
}

/** The event with its texts as every wire takes them: half of a pair of surrogates becomes U+FFFD. */
function wellFormed(event: AuditEvent): AuditEvent {
  const texts = Object.entries(event).filter(([, value]) => typeof value === "string" && !value.isWellFormed());
  const mended = texts.map(([name, text]) => [name, (text as string).toWellFormed()]);
  return texts.length === 0 ? event : { ...event, ...Object.fromEntries(mended) };
}
