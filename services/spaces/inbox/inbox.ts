/**
 * The inbox of an agent. It takes an event once under its `event_id`:
 *
 *   tr:<call>               the result of a call
 *   msg:<space>:<message>   what was said in the agent's space
 *   plan:…                  a plan whose time has come
 *
 * A run reads an event as one line (`inbox-text.ts`). Whoever stores an event puts a wake-up of the session into `TOOLBUS_WAKES`
 * (a `SessionWake` without a run); the orchestrator decides whether the agent runs.
 */
import { clone, create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import type { LogUpdate } from "#runtime/rpc/watching/log-update.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { isSameOwner, type Owner } from "../owners/owner.ts";
import { textOfEvent } from "./inbox-text.ts";

/** Where inboxes are kept: what waits, and which events wait no longer. */
export interface InboxStore {
  /** What waits for agents of the session, in order, from a position on; everything unless told. */
  read(sessionId: string, fromSequence?: number): Promise<InboxEvent[]>;
  /** How much waits, and the position to append behind. */
  end(sessionId: string): Promise<InboxEnd>;
  /** Appends behind that position, and gives the event's; undefined when somebody else wrote there. */
  append(event: InboxEvent, after: number): Promise<number | undefined>;
  remove(event: Pick<InboxEvent, "sessionId" | "sequence">): Promise<void>;
  /** What waits from a sequence on and what comes, or what comes, until the signal aborts. */
  follow(sessionId: string, fromSequence: bigint | undefined, signal: AbortSignal): Followed;
  /** Marks an event as waiting unless it has a mark, and gives the mark that it had. */
  mark(owner: Owner, eventId: string): Promise<Mark>;
  markSeen(owner: Owner, eventId: string): Promise<void>;
}

type Followed = AsyncIterable<LogUpdate<InboxEvent>>;

interface InboxEnd {
  readonly count: number;
  readonly lastSequence: number;
}

export type Mark = "none" | "waiting" | "seen";

export type Inbox = ReturnType<typeof createInbox>;

export interface InboxParts {
  store: InboxStore;
  clock: Clock;
  /** Lets somebody look whether the session has a reason to run; acknowledged when this resolves. */
  wake: (sessionId: string) => Promise<void>;
  /** Whether nothing further may be stored for the session, as its principal has its share of all inboxes; none has unless told. */
  isOverQuota?: (sessionId: string, bytes: number) => Promise<boolean>;
}

/** For all agents of a session. The stream keeps somewhat more, and would forget whatever is oldest. */
export const mostWaiting = 900;

/**
 * INBOX1  An event is marked as waiting before it stands, and as seen before it is removed. So one without a mark was never
 *     delivered, and nothing has to be read to know that. One that is marked as waiting stands, or its delivery died before
 *     it did: then the whole inbox is read.
 * INBOX2  An append names the position that it follows, which was read before the mark: of two deliveries of one event the second
 *     is refused, reads what came meanwhile, and finds the first. Unless the first has been seen and removed by then: nothing refuses
 *     the second, which looks at the mark again, and removes what it stored.
 * INBOX3  Room is made for an event by forgetting the oldest words, which stand in their space too; never by forgetting a result
 *     or a plan: when there is nothing else, the event is refused. A notice, for which there is room besides, tells their agent how
 *     many words are gone. It is stored before they go: a death between the two tells too many, and never too few.
 * INBOX4  Whoever delivers an event and finds it waiting wakes the session, also when it was there before: the one who stored
 *     it may have died before the wake. One wake too many finds nothing to do.
 */
export function createInbox({ store, clock, wake, isOverQuota = async () => false }: InboxParts) {
  const waiting = async (owner: Owner) => {
    const events = await store.read(owner.sessionId);
    return events.filter((event) => isSameOwner(event, owner)).map(asRead);
  };

  /** Gives where it stands: nobody reads what has been seen. */
  async function put(event: InboxEvent): Promise<"stored" | "waiting" | "seen"> {
    const { sessionId, eventId } = event;
    const stands = async (from?: number) => (await store.read(sessionId, from)).some((other) => isSame(other, event));
    const { length } = toBinary(InboxEventSchema, event);
    if ((await isOverQuota(sessionId, length)) && !(await stands())) refuseOverQuota(sessionId); // and leaves no mark
    let end = await store.end(sessionId);
    const mark = await store.mark(event, eventId); // INBOX1
    if (mark === "seen") return "seen";
    if (mark === "waiting" && (await stands())) return "waiting";
    for (;;) {
      const hasRoom = end.count < mostWaiting || (await makeRoom(sessionId)); // INBOX3
      const sequence = hasRoom ? await store.append(event, end.lastSequence) : undefined; // INBOX2
      if (sequence !== undefined) {
        if ((await store.mark(event, eventId)) !== "seen") return "stored";
        await store.remove({ sessionId, sequence: BigInt(sequence) });
        return "seen";
      }
      const { lastSequence } = end;
      end = await store.end(sessionId);
      if (await stands(lastSequence + 1)) return "waiting";
    }
  }

  /** Gives whether there was room already, as notices take none. */
  async function makeRoom(sessionId: string): Promise<boolean> {
    const events = await store.read(sessionId);
    const counted = events.filter((event) => lostIn(event) === 0);
    if (counted.length < mostWaiting) return true;
    const oldest =
      counted.find(({ event }) => event.case === "message") ??
      refuse("resource_exhausted", `${counted.length} results and plans wait for the agents of the session`, {
        reason: "INBOX_FULL",
      });
    const former = events.find((event) => lostIn(event) > 0 && isSameOwner(event, oldest));
    const notice = noticeOf(oldest, 1 + (former === undefined ? 0 : lostIn(former)), clock);
    while (!(await store.append(notice, (await store.end(sessionId)).lastSequence)));
    for (const event of former === undefined ? [oldest] : [oldest, former]) {
      await store.markSeen(event, event.eventId); // INBOX1
      await store.remove(event);
    }
    return false;
  }

  return {
    /** Gives whether it was there before: then nothing is stored. */
    async deliver(given: InboxEvent): Promise<{ duplicate: boolean }> {
      const outcome = await put(addressed(given, clock));
      if (outcome !== "seen") await wake(given.sessionId); // INBOX4
      return { duplicate: outcome !== "stored" };
    },
    list: waiting,
    async acknowledge(owner: Owner, eventIds: readonly string[]): Promise<void> {
      const ids = new Set(eventIds);
      for (const event of await waiting(owner)) {
        if (!ids.has(event.eventId)) continue;
        await store.markSeen(owner, event.eventId); // INBOX1
        await store.remove(event);
      }
    },
    async *follow(owner: Owner, fromSequence: bigint | undefined, signal: AbortSignal): Followed {
      for await (const update of store.follow(owner.sessionId, fromSequence, signal)) {
        if (update.case !== "event") yield update;
        else if (isSameOwner(update.value, owner)) yield { case: "event", value: asRead(update.value) };
      }
    },
  };
}

const LOST = /^lost:([0-9]+):/;

/** How many words are gone, by a notice; 0 for every other event. */
function lostIn({ eventId }: InboxEvent): number {
  return Number(LOST.exec(eventId)?.[1] ?? 0);
}

function noticeOf({ sessionId, agent, sequence }: InboxEvent, lost: number, clock: Clock): InboxEvent {
  const text = `${lost} earlier messages found no room in your inbox; read_messages shows what your space has of them`;
  const value = { author: "toolbus", content: textContent(text) };
  const eventId = `lost:${lost}:${sequence}`;
  const createTime = timestampFromMs(clock.now());
  return create(InboxEventSchema, { sessionId, agent, eventId, createTime, event: { case: "message", value } });
}

function refuseOverQuota(sessionId: string): never {
  const text = `the inboxes of whoever opened session ${sessionId} have their share of the store: let its agents read what waits`;
  return refuse("resource_exhausted", text, { reason: "INBOX_FULL" });
}

function isSame(one: InboxEvent, other: InboxEvent): boolean {
  return one.eventId === other.eventId && isSameOwner(one, other);
}

const token = /^[a-zA-Z0-9_-]{1,64}$/;

function addressed(given: InboxEvent, clock: Clock): InboxEvent {
  if (!token.test(given.sessionId)) refuseField("event.session_id", "names no session");
  if (!token.test(given.agent)) refuseField("event.agent", "names no agent");
  if (given.event.case === undefined) refuseField("event.event", "is not set");
  const event = clone(InboxEventSchema, given);
  event.createTime ??= timestampFromMs(clock.now());
  event.text = "";
  return event;
}

function asRead(event: InboxEvent): InboxEvent {
  event.text = textOfEvent(event);
  return event;
}
