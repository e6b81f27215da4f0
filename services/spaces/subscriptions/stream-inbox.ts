import { createHash } from "node:crypto";
import { clone, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { appendFenced } from "#runtime/bus/append.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { createKey, readKey } from "#runtime/bus/key-value.ts";
import { followSubject, readSubject, type StoredMessage } from "#runtime/bus/read.ts";
import type { InboxStore } from "../inbox.ts";
import { keyOf, type Owner } from "../owner.ts";

const stream = "TOOLBUS_INBOX";
const seenBucket = "toolbus_inbox_seen";

/** Inboxes in their stream, which holds what waits and nothing else; what was seen stands in a bucket. */
export function createStreamInbox(bus: Bus): InboxStore {
  return {
    async read(sessionId) {
      const events: InboxEvent[] = [];
      const subject = subjectOfInbox(sessionId);
      for await (const message of readSubject(bus, subject)) events.push(eventFromStored(message));
      const lastSequence = events.length > 0 ? Number(events.at(-1)?.sequence) : 0;
      return { events, lastSequence };
    },
    async append(event, after) {
      const stored = clone(InboxEventSchema, event);
      stored.sequence = 0n; // its place tells it
      const outcome = await appendFenced(bus, {
        subject: subjectOfInbox(event.sessionId),
        expectedLastSequence: after,
        payload: toBinary(InboxEventSchema, stored),
      });
      return outcome.kind === "appended";
    },
    async remove(event) {
      const { manager } = bus;
      const position = Number(event.sequence);
      const isThere = await manager.streams.getMessage(stream, { seq: position });
      if (isThere !== null) await manager.streams.deleteMessage(stream, position, false);
    },
    async *follow(sessionId, fromSequence, signal) {
      const from = { fromSequence: Math.max(Number(fromSequence), 1), signal };
      for await (const message of followSubject(bus, subjectOfInbox(sessionId), from)) yield eventFromStored(message);
    },
    wasSeen: async (owner, eventId) => (await readKey(bus, seenBucket, seenKey(owner, eventId))) !== undefined,
    async markSeen(owner, eventId) {
      await createKey(bus, { bucket: seenBucket, key: seenKey(owner, eventId), value: "" }); // marked twice is marked
    },
  };
}

function subjectOfInbox(sessionId: string): string {
  return `toolbus.inbox.${sessionId}`;
}

function eventFromStored(message: StoredMessage): InboxEvent {
  const event = fromBinary(InboxEventSchema, message.data);
  event.sequence = BigInt(message.sequence);
  return event;
}

/** Ids of events hold what keys may not. */
function seenKey(owner: Owner, eventId: string): string {
  return `${keyOf(owner)}.${createHash("sha256").update(eventId).digest("base64url")}`;
}
