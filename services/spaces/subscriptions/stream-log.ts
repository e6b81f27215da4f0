import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type SpaceEvent, SpaceEventSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { sharedReading } from "#runtime/bus/buckets/reading/shared-reading.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { appendFenced } from "#runtime/bus/streams/append/append.ts";
import { followUpdates } from "#runtime/bus/streams/follow/log-updates.ts";
import { lastSequenceOf, readSubject, type StoredMessage } from "#runtime/bus/streams/read.ts";
import { readRecord } from "#runtime/bus/streams/record.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import type { SpaceLog } from "../space/space-log.ts";
import { emptySpace, eventAt, foldEvent, type SpaceState } from "../space/space-state.ts";

interface KnownSpace {
  state: SpaceState;
  /** Each reading goes on from where the one before it ended. */
  readonly read: () => Promise<void>;
}

const knownSpaces = 200;

export function subjectOfSpace(spaceId: string): string {
  return `toolbus.space.${spaceId}`;
}

/** What cannot be read has its place in the log, as an event that says nothing. */
function eventFromStored(bus: Bus, message: StoredMessage): SpaceEvent {
  const event = readRecord(bus, message, () => fromBinary(SpaceEventSchema, message.data));
  return eventAt(event ?? create(SpaceEventSchema), BigInt(message.sequence));
}

/**
 * The logs of spaces in their stream. What was folded is kept for the spaces that were used last, and each reading takes in
 * only what came since.
 */
export function createStreamLog(bus: Bus): SpaceLog {
  const spaces = new BoundedMap<string, KnownSpace>(knownSpaces);

  const use = (spaceId: string): KnownSpace => {
    const opened: KnownSpace = { state: emptySpace(), read: sharedReading(() => catchUp(spaceId, opened)) };
    const known = spaces.get(spaceId) ?? opened;
    spaces.set(spaceId, known); // in order of their last use
    return known;
  };

  const catchUp = async (spaceId: string, known: KnownSpace) => {
    const subject = subjectOfSpace(spaceId);
    const toSequence = await lastSequenceOf(bus, subject);
    if (toSequence < known.state.sequence) known.state = emptySpace(); // what was folded has gone to make room
    const fromSequence = Number(known.state.sequence) + 1;
    for await (const message of readSubject(bus, subject, { fromSequence, toSequence })) {
      foldEvent(known.state, eventFromStored(bus, message));
    }
  };

  return {
    async read(spaceId) {
      const known = use(spaceId);
      await callPatience.limit(`reading space ${spaceId}`, known.read());
      return known.state;
    },
    async append(spaceId, after, event) {
      const outcome = await appendFenced(bus, {
        subject: subjectOfSpace(spaceId),
        expectedLastSequence: Number(after),
        payload: toBinary(SpaceEventSchema, event),
      });
      return outcome.kind === "appended" ? eventAt(event, BigInt(outcome.sequence)) : undefined;
    },
    follow(spaceId, fromSequence, signal) {
      const log = { name: `space ${spaceId}`, kind: "fenced", fromSequence, signal } as const;
      return followUpdates(bus, subjectOfSpace(spaceId), {
        ...log,
        eventFrom: (message) => eventFromStored(bus, message),
      });
    },
  };
}
