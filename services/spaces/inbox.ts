import { clone } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";

/** Whose inbox: what an agent of a session was told stays with it when the session gets another agent. */
export interface Recipient {
  sessionId: string;
  agent: string;
}

/** Where inboxes are kept: what waits, and which events wait no longer. */
export interface InboxStore {
  /** Everything that waits for agents of the session, in order, with the position to append behind. */
  read(sessionId: string): Promise<{ events: InboxEvent[]; lastSequence: number }>;
  /** Appends behind that position; false when somebody else wrote there. */
  append(event: InboxEvent, after: number): Promise<boolean>;
  remove(event: InboxEvent): Promise<void>;
  /** What waits and what comes, until the signal aborts. */
  follow(sessionId: string, signal: AbortSignal): AsyncIterable<InboxEvent>;
  wasSeen(recipient: Recipient, eventId: string): Promise<boolean>;
  markSeen(recipient: Recipient, eventId: string): Promise<void>;
}

export interface Inbox {
  /** Gives whether it was there before: then nothing is stored. */
  deliver(event: InboxEvent): Promise<{ duplicate: boolean }>;
  list(recipient: Recipient): Promise<InboxEvent[]>;
  acknowledge(recipient: Recipient, eventIds: readonly string[]): Promise<void>;
  follow(recipient: Recipient, signal: AbortSignal): AsyncIterable<InboxEvent>;
}

/**
 * I1  An event is marked as seen before it is removed. So whoever finds it neither waiting nor, looked up afterwards, seen,
 *     knows that it was never delivered.
 * I2  An append names the position that it follows: of two deliveries of one event the second is refused, reads again, and
 *     finds the first.
 */
export function createInbox({ store, clock }: { store: InboxStore; clock: Clock }): Inbox {
  const waiting = async (recipient: Recipient) =>
    (await store.read(recipient.sessionId)).events.filter(isFor(recipient));

  return {
    async deliver(given) {
      const event = addressed(given, clock);
      for (;;) {
        const { events, lastSequence } = await store.read(event.sessionId);
        if (events.filter(isFor(event)).some((other) => other.eventId === event.eventId)) return { duplicate: true };
        if (await store.wasSeen(event, event.eventId)) return { duplicate: true }; // I1
        if (await store.append(event, lastSequence)) return { duplicate: false }; // I2
      }
    },
    list: waiting,
    async acknowledge(recipient, eventIds) {
      const ids = new Set(eventIds);
      for (const event of await waiting(recipient)) {
        if (!ids.has(event.eventId)) continue;
        await store.markSeen(recipient, event.eventId); // I1
        await store.remove(event);
      }
    },
    async *follow(recipient, signal) {
      for await (const event of store.follow(recipient.sessionId, signal)) {
        if (isFor(recipient)(event)) yield event;
      }
    },
  };
}

const token = /^[a-zA-Z0-9_-]{1,64}$/;

function addressed(given: InboxEvent, clock: Clock): InboxEvent {
  if (!token.test(given.sessionId)) refuse("invalid_argument", "event.session_id: names no session");
  if (!token.test(given.agent)) refuse("invalid_argument", "event.agent: names no agent");
  if (given.event.case === undefined) refuse("invalid_argument", "event.event: is not set");
  const event = clone(InboxEventSchema, given);
  event.time ??= timestampFromMs(clock.now());
  return event;
}

function isFor(recipient: Recipient): (event: InboxEvent) => boolean {
  return (event) => event.sessionId === recipient.sessionId && event.agent === recipient.agent;
}
