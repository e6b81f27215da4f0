import { hash } from "node:crypto";
import { clone, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { textCodec } from "#runtime/bus/buckets/bucket.ts";
import type { BucketEvictionOptions } from "#runtime/bus/buckets/bucket-eviction.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { retryOnBus } from "#runtime/bus/link/link.ts";
import { appendFenced } from "#runtime/bus/streams/append/append.ts";
import { followUpdates } from "#runtime/bus/streams/follow/log-updates.ts";
import { lastSequenceOf, readSubject, type StoredMessage } from "#runtime/bus/streams/read.ts";
import { readRecord } from "#runtime/bus/streams/record.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { InboxStore } from "../inbox/inbox.ts";
import { keyOf, type Owner } from "../owners/owner.ts";

const stream = "TOOLBUS_INBOX";
const MARKS = { bucket: "toolbus_inbox_seen", prefix: "", codec: textCodec } as const;
const WAITING = "waiting";
const SEEN = "";

/** Inboxes in their stream, which holds what waits and nothing else; the marks of events stand in a bucket. */
export function createStreamInbox(bus: Bus): InboxStore {
  const marks = createBucket(bus, MARKS);
  const unlessGone = async (seq: number, error: unknown) => {
    if ((await bus.manager.streams.getMessage(stream, { seq })) !== null) throw error;
  };
  return {
    async read(sessionId, fromSequence) {
      const events: InboxEvent[] = [];
      const subject = subjectOfInbox(sessionId);
      for await (const message of readSubject(bus, subject, { fromSequence })) {
        const event = eventFromStored(bus, message);
        if (event !== undefined) events.push(event);
      }
      return events;
    },
    async end(sessionId) {
      const subject = subjectOfInbox(sessionId);
      const info = () => bus.manager.streams.info(stream, { subjects_filter: subject });
      const [lastSequence, { state }] = await Promise.all([
        lastSequenceOf(bus, subject),
        retryOnBus(bus.link, info, { what: `counting ${subject}` }),
      ]);
      return { lastSequence, count: state.subjects?.[subject] ?? 0 };
    },
    async append(event, after) {
      const stored = clone(InboxEventSchema, event);
      stored.sequence = 0n; // its place tells it
      const outcome = await appendFenced(bus, {
        subject: subjectOfInbox(event.sessionId),
        expectedLastSequence: after,
        payload: toBinary(InboxEventSchema, stored),
      });
      return outcome.kind === "appended" ? outcome.sequence : undefined;
    },
    async remove({ sessionId, sequence }) {
      const { streams } = bus.manager;
      const seq = Number(sequence);
      const remove = () => streams.deleteMessage(stream, seq, false).catch((error: unknown) => unlessGone(seq, error));
      await retryOnBus(bus.link, remove, { what: `removing from ${subjectOfInbox(sessionId)}` });
    },
    follow(sessionId, fromSequence, signal) {
      const log = { name: `the inbox of session ${sessionId}`, kind: "consumed", fromSequence, signal } as const;
      return followUpdates(bus, subjectOfInbox(sessionId), {
        ...log,
        eventFrom: (message) => eventFromStored(bus, message),
      });
    },
    async mark(owner, eventId) {
      const { before } = await marks.update(markKey(owner, eventId), (mark) =>
        mark === undefined ? WAITING : undefined,
      );
      if (before === undefined) return "none";
      return before === WAITING ? "waiting" : "seen";
    },
    async markSeen(owner, eventId) {
      await marks.update(markKey(owner, eventId), (mark) =>
        mark === undefined || mark === WAITING ? SEEN : undefined,
      );
    },
  };
}

function subjectOfInbox(sessionId: string): string {
  return `toolbus.inbox.${sessionId}`;
}

/** Undefined for what cannot be read: no run is told of it. */
function eventFromStored(bus: Bus, message: StoredMessage): InboxEvent | undefined {
  const event = readRecord(bus, message, () => {
    const parsed = fromBinary(InboxEventSchema, message.data);
    return parsed.eventId === "" ? undefined : parsed;
  });
  if (event !== undefined) event.sequence = BigInt(message.sequence);
  return event;
}

/** How long it is remembered that an event was seen, whatever the room: a delivery is repeated for as long as that at most. */
const SEEN_KEPT_MS = 3_600_000;

/** Marks of events that wait stay, those of events that were seen leave when room gets short. */
export function seenMarks(clock: Clock): BucketEvictionOptions<string> {
  return { place: MARKS, keptMs: SEEN_KEPT_MS, mayGo: (mark) => mark === SEEN, clock };
}

/** Ids of events hold what keys may not. */
function markKey(owner: Owner, eventId: string): string {
  return `${keyOf(owner)}.${hash("sha256", eventId, "base64url")}`;
}
