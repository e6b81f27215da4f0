import type { Bus } from "#runtime/bus/bus.ts";
import { followSubject, lastSequenceOf, type StoredMessage } from "#runtime/bus/streams/read.ts";
import { openBackground } from "#runtime/lifecycle/background.ts";
import type { Attachments } from "./streams/attachments.ts";
import { type Changes, createChanges } from "./streams/changes.ts";
import { createBucketAnsweredRequests } from "./subscriptions/bucket-answered-requests.ts";
import { createBucketDeclarations, declarationsSubject } from "./subscriptions/bucket-declarations.ts";
import { createBucketLateRequests } from "./subscriptions/bucket-late-requests.ts";
import { createBucketStreamRecords, recordFromMessage, recordsSubject } from "./subscriptions/bucket-stream-records.ts";
import { createBusHolders } from "./subscriptions/bus-holders.ts";

export { createNeighbours } from "./subscriptions/neighbours.ts";
export { createPeers, reasonOfCancellation } from "./subscriptions/peers.ts";

/** What the service remembers, and who holds which call, as it stands on the bus. */
export function createStores(bus: Bus, instance: string) {
  const changes = createChanges();
  return {
    changesOfDeclarations: changes,
    declarations: createBucketDeclarations(bus, changes),
    late: createBucketLateRequests(bus),
    answered: createBucketAnsweredRequests(bus),
    records: createBucketStreamRecords(bus),
    holders: createBusHolders(bus, instance),
  };
}

export interface HearingParts {
  attachments: Attachments;
  /** Of streams, by session. */
  changes: Changes;
  /** Likewise. */
  changesOfDeclarations: Changes;
  onError: (error: unknown) => void;
}

/**
 * Hears of every stream that opens or ends anywhere, and of every declaration: closes streams here that were replaced, and wakes
 * who waits for a session. One subscription each for all sessions; from when it resolves nothing is missed.
 */
export async function openHearing(bus: Bus, parts: HearingParts): Promise<AsyncDisposable> {
  const { attachments, changes, changesOfDeclarations, onError } = parts;
  await using stack = new AsyncDisposableStack();
  const onRecord = (message: StoredMessage) => {
    const { record, revision } = recordFromMessage(bus, message) ?? {};
    if (record === undefined || revision === undefined) return;
    if (record.kind === "attached") attachments.keepOnly(record.sessionId, record.attachmentId, revision);
    changes.tell(record.sessionId);
  };
  const onDeclaration = ({ subject }: StoredMessage) => changesOfDeclarations.tell(subject.split(".").at(-1) ?? "");
  stack.use(await openFollowing(bus, recordsSubject, onRecord, onError));
  stack.use(await openFollowing(bus, declarationsSubject, onDeclaration, onError));
  return stack.move();
}

async function openFollowing(
  bus: Bus,
  subject: string,
  hear: (message: StoredMessage) => void,
  onError: (error: unknown) => void,
): Promise<AsyncDisposable> {
  const fromSequence = (await lastSequenceOf(bus, subject)) + 1;
  return openBackground(async (signal) => {
    try {
      for await (const message of followSubject(bus, subject, { fromSequence, signal })) hear(message);
    } catch (error) {
      if (!signal.aborted) onError(error);
    }
  });
}
