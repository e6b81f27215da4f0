/**
 * Plans that wake their agent.
 *
 * PLAN1  That a plan's time has come is decided by one change of the record in which it stands: the plan is marked, and the
 *     event lies beside it in `due_events`. A plan that was changed or deleted before makes no event; one that is changed or
 *     deleted afterwards takes nothing back.
 * PLAN2  What lies in `due_events` goes to the inbox, which takes an event once, and is removed afterwards. Whoever reads the
 *     record goes on where another died.
 * PLAN3  Every instance follows all records, from the beginning when it starts: a time that passed while there was none is
 *     noticed by the first one.
 */

import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { MemoryRecord } from "#gen/toolbus/internal/space/v1/memory_pb.ts";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import type { MemoryEntry } from "#gen/toolbus/space/v1/memory_pb.ts";
import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openBackground } from "#runtime/lifecycle/background.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { type Ending, openEnding } from "#runtime/time/ending.ts";
import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";
import type { Inbox } from "../inbox/inbox.ts";
import { keyOf, type Owner } from "../owners/owner.ts";
import { dueMsOf } from "./memory.ts";

export interface DuePlansParts {
  records: Bucket<MemoryRecord>;
  inbox: Pick<Inbox, "deliver">;
  clock: Clock;
}

/** Brings those of an agent's plans to its inbox whose time has come. Doing it often, and at once, does it once. */
export function createDuePlans({ records, inbox, clock }: DuePlansParts) {
  return async (owner: Owner): Promise<void> => {
    await records.update(keyOf(owner), (record) => record && withDue(record, clock.now())); // PLAN1
    const events = (await records.read(keyOf(owner)))?.value.dueEvents ?? [];
    if (events.length === 0) return;
    for (const event of events) await inbox.deliver(event); // PLAN2
    const delivered = new Set(events.map(({ eventId }) => eventId));
    await records.update(keyOf(owner), (current) => current && withoutEvents(current, delivered));
  };
}

/** Undefined when no time has come. */
function withDue(record: MemoryRecord, nowMs: number): MemoryRecord | undefined {
  const isDue = (entry: MemoryEntry) => (dueMsOf(entry) ?? Number.POSITIVE_INFINITY) <= nowMs;
  const due = record.entries.filter(isDue);
  if (due.length === 0) return undefined;
  const wokeAt = timestampFromMs(nowMs);
  return {
    ...record,
    entries: record.entries.map((entry) => (isDue(entry) ? { ...entry, wakeTime: wokeAt } : entry)),
    dueEvents: [...record.dueEvents, ...due.map((entry) => eventFrom(record, entry))],
  };
}

function eventFrom({ sessionId, agent }: Owner, { key, text, dueTime: dueAt }: MemoryEntry): InboxEvent {
  const eventId = `plan:${randomUUID()}`; // the same plan may be set again, for the same time too
  const time = dueAt && { time: dueAt };
  return create(InboxEventSchema, {
    eventId,
    sessionId,
    agent,
    ...time,
    event: { case: "plan", value: { key, text } },
  });
}

/** Undefined when another instance has removed them. */
function withoutEvents(record: MemoryRecord, eventIds: ReadonlySet<string>): MemoryRecord | undefined {
  const dueEvents = record.dueEvents.filter(({ eventId }) => !eventIds.has(eventId));
  return dueEvents.length === record.dueEvents.length ? undefined : { ...record, dueEvents };
}

/** When a record next needs a look; undefined for never. What lies beside it is left to whoever put it there for a while. */
function nextLookMs({ entries, dueEvents }: MemoryRecord, nowMs: number): number | undefined {
  const times = entries.map(dueMsOf).filter((ms) => ms !== undefined);
  if (dueEvents.length > 0) times.push(nowMs + retryMs); // PLAN2
  return times.length === 0 ? undefined : Math.min(...times);
}

const retryMs = 1_000;

export interface PlanClockParts {
  records: Pick<Bucket<MemoryRecord>, "follow">;
  look: (owner: Owner) => Promise<void>;
  clock: Clock;
  logger: { warn(details: object, message: string): void };
}

/** Looks at each record when the time of one of its plans comes. */
export function openPlanClock({ records, look, clock, logger }: PlanClockParts): AsyncDisposable {
  const waits = new Map<string, Ending>();
  const looks = new Set<Promise<void>>();

  const lookAt = async (owner: Owner, atMs: number, ends: AbortSignal) => {
    for (let nextMs = atMs; ; nextMs = clock.now() + retryMs) {
      const waitMs = nextMs - clock.now();
      if (waitMs > 0) await clock.delay(waitMs, ends);
      try {
        return await look(owner);
      } catch (error) {
        logger.warn({ err: error, ...owner }, `a plan waits: ${messageFromUnknown(error)}`);
      }
    }
  };
  const plan = (record: MemoryRecord, signal: AbortSignal) => {
    const owner = { sessionId: record.sessionId, agent: record.agent };
    const key = keyOf(owner);
    waits.get(key)?.end(); // a look that is under way ends by itself
    waits.delete(key);
    const atMs = nextLookMs(record, clock.now());
    if (atMs === undefined) return;
    const ending = openEnding(signal);
    waits.set(key, ending);
    const looking = lookAt(owner, atMs, ending.signal)
      .catch(() => {}) // another record took its place, or the service stops
      .finally(() => {
        ending[Symbol.dispose]();
        looks.delete(looking);
      });
    looks.add(looking);
  };
  const onError = (error: unknown) => logger.warn({ err: error }, `plans wake nobody: ${messageFromUnknown(error)}`);
  return openBackground(async (signal) => {
    const follow = async () => {
      for await (const change of records.follow({ signal })) if (change.kind === "set") plan(change.value, signal);
    };
    await repeatUntilAborted(follow, { initialMs: retryMs, maxMs: retryMs, clock, signal, onError });
    await Promise.all(looks);
  });
}
