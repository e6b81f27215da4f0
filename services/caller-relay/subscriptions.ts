import { CallerDeclarationSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { AnsweredRequestSchema } from "#gen/toolbus/internal/caller/v1/answered_request_pb.ts";
import { ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { codecOf, jsonCodec } from "#runtime/bus/buckets/bucket.ts";
import { withSharedReads } from "#runtime/bus/buckets/reading/shared-reads.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { openFollower } from "#runtime/bus/buckets/views/follower.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import type { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { lateRequest } from "./requests/late-requests.ts";
import { endIfReplaced } from "./streams/attaching.ts";
import type { Attachments } from "./streams/attachments.ts";
import { streamRecord } from "./streams/stream-record.ts";
import type { Turns } from "./streams/turns.ts";
import { createBusHolders } from "./subscriptions/bus-holders.ts";

export { createNeighbours } from "./subscriptions/neighbours.ts";
export { createPeers, reasonOfCancellation } from "./subscriptions/peers.ts";

const RECORDS = { bucket: "toolbus_owners", prefix: "caller.", codec: jsonCodec(streamRecord.parse) } as const;
const DECLARATIONS = {
  bucket: "toolbus_callers",
  prefix: "declaration.",
  codec: codecOf(CallerDeclarationSchema),
} as const;
const LATE = { bucket: "toolbus_callers", prefix: "late.", codec: jsonCodec(lateRequest.parse) } as const;
const ANSWERED = { bucket: "toolbus_answers", prefix: "", codec: codecOf(AnsweredRequestSchema) } as const;
const RESULTS = { bucket: "toolbus_caller_results", prefix: "", codec: codecOf(ToolResultSchema) } as const;

/** What the service remembers, and who holds which call, as it stands on the bus. What cannot be read stands for nobody. */
export function createStores(bus: Bus, instance: string) {
  const unreadable = "absent";
  return {
    declared: withSharedReads(createBucket(bus, { ...DECLARATIONS, unreadable })),
    late: createBucket(bus, { ...LATE, unreadable }),
    answered: createBucket(bus, ANSWERED),
    results: createBucket(bus, { ...RESULTS, unreadable }),
    records: withSharedReads(createBucket(bus, { ...RECORDS, unreadable })),
    holders: createBusHolders(bus, instance),
  };
}

/** Where declarations lie, by session: what their principals have shares of. */
export const DECLARED = {
  stream: `KV_${DECLARATIONS.bucket}`,
  prefix: `$KV.${DECLARATIONS.bucket}.${DECLARATIONS.prefix}`,
};

export interface FollowingParts extends Pick<ReturnType<typeof createStores>, "records" | "declared"> {
  attachments: Attachments;
  /** Of streams, by session. */
  changes: KeyedListeners;
  turns: Turns;
  /** Likewise. */
  changesOfDeclarations: KeyedListeners;
  onFault: (fault: string) => void;
}

/**
 * Follows every stream that opens or ends anywhere, and every declaration: closes streams here that were replaced, and wakes
 * who waits for a session. One subscription each for all sessions; from when it resolves nothing is missed.
 */
export async function openFollowing(parts: FollowingParts): Promise<AsyncDisposable> {
  const { records, declared, attachments, changes, turns, changesOfDeclarations, onFault } = parts;
  await using stack = new AsyncDisposableStack();
  const verify = async () => {
    for (const attachment of attachments.all()) await endIfReplaced(records, attachment);
  };
  const onUnverified = (error: unknown) => onFault(`streams of callers may be outdated: ${messageFromUnknown(error)}`);
  stack.use(
    await openFollower(records, {
      from: "now",
      onFault,
      onResumed: () => void verify().catch(onUnverified), // a record may have been removed meanwhile
      onChange(change) {
        turns.forget(change.key);
        if (change.kind === "removed") attachments.keepOnly(change.key, [], change.revision);
        if (change.kind !== "set") return;
        const { key, value, revision } = change;
        if (value.kind === "open") attachments.keepOnly(key, value.streams, revision);
        changes.notify(key);
      },
    }),
  );
  stack.use(
    await openFollower(declared, {
      from: "now",
      onFault,
      onChange: ({ key }) => changesOfDeclarations.notify(key),
      onResumed: () => changesOfDeclarations.notifyAll(), // one that was removed meanwhile
    }),
  );
  return stack.move();
}
