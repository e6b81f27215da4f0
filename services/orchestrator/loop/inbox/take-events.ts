/**
 * News from the inbox join a run before its first turn, each exactly once.
 *
 * inbox-1  They are acknowledged after they stand in the log: a process that dies in between leaves them waiting, and whoever
 *     finds them in a log, of this run or of one before, acknowledges them again and takes them no second time.
 * inbox-2  What has no room in this run's event waits for the next run.
 * inbox-3  A run that is to be canceled takes none.
 */

import type { Item } from "#gen/toolbus/run/v1/run_pb.ts";
import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";
import type { ClaimedRun } from "../../log/claim.ts";
import { userItem } from "../../log/state/view.ts";
import type { InboxContents } from "./inbox.ts";

export interface DeliveredInbox extends InboxContents {
  /** Events that joined runs before. */
  readonly takenEventIds: ReadonlySet<string>;
  /** Never rejects: what could not be acknowledged is found again (inbox-1). */
  readonly acknowledge: (eventIds: readonly string[]) => Promise<void>;
}

const maxBytes = 512 * 1_024;

export async function takeEvents(
  run: ClaimedRun,
  { events, takenEventIds, acknowledge }: DeliveredInbox,
): Promise<void> {
  const isTaken = (eventId: string) => takenEventIds.has(eventId) || run.state.inbox?.eventIds.includes(eventId);
  const fresh = withinRoom(events.filter(({ eventId }) => !isTaken(eventId)));
  const { turns, inbox, cancel } = run.state;
  const mayTake = turns.length === 0 && inbox === undefined && cancel === undefined;
  if (mayTake && fresh.length > 0) {
    const eventIds = fresh.map(({ eventId }) => eventId);
    await run.append(() => ({ case: "inboxTaken", value: { eventIds, items: fresh.map(itemFromEvent) } }));
  }
  const done = events.flatMap(({ eventId }) => (isTaken(eventId) ? [eventId] : []));
  if (done.length > 0) await acknowledge(done); // inbox-1
}

/** inbox-2: at least one, however long it is. */
function withinRoom(events: readonly InboxEvent[]): InboxEvent[] {
  let bytes = 0;
  const firstOutside = events.findIndex(({ text }, index) => {
    bytes += Buffer.byteLength(text);
    return index > 0 && bytes > maxBytes;
  });
  return firstOutside < 0 ? [...events] : events.slice(0, firstOutside);
}

function itemFromEvent({ text }: InboxEvent): Item {
  const bytes = Buffer.byteLength(text);
  const shown = bytes <= maxBytes ? text : `${Buffer.from(text).subarray(0, maxBytes)}… (${bytes} bytes)`;
  return userItem(shown);
}
