import type { Audit } from "#runtime/audit/trail.ts";
import { openBucketEviction } from "#runtime/bus/buckets/bucket-eviction.ts";
import { readSharedKey } from "#runtime/bus/buckets/shared-key.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { openEviction } from "#runtime/bus/quota/eviction.ts";
import { openQuota } from "#runtime/bus/quota/quota.ts";
import { usageByHeader } from "#runtime/bus/quota/usage.ts";
import { REFUSAL_WATERMARK } from "#runtime/bus/quota/watermarks.ts";
import type { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { SessionOwners } from "#runtime/rpc/access/session-owners.ts";
import { systemClock as clock } from "#runtime/time/clock.ts";
import { createDueWorker } from "../calls/due-work/due-work.ts";
import { KEPT_MS, mayLeave } from "../calls/due-work/retention.ts";
import { createOutside } from "../calls/execute/outside.ts";
import type { InFlightCalls } from "../calls/in-flight.ts";
import type { Messages } from "../calls/messages.ts";
import { createAcknowledgements } from "../calls/requests/acknowledgements.ts";
import { createCancellation } from "../calls/requests/cancellation.ts";
import { createAbsence } from "../calls/watchers/absence.ts";
import { DeliveryIds } from "../calls/watchers/delivery-id.ts";
import { Dispatcher } from "../calls/watchers/dispatcher.ts";
import { createLostWatchers } from "../calls/watchers/lost-watchers.ts";
import type { CallQueue } from "../calls/watchers/ports.ts";
import { type DueWorkQueue, openDueWork } from "../subscriptions/calls/due-work.ts";
import { openRunningCalls } from "../subscriptions/calls/running-calls.ts";
import { callPlace, openCallStore } from "../subscriptions/calls/store/store.ts";
import { createTaskIndex, TASK_EVICTION } from "../subscriptions/calls/task-index.ts";
import { openCallQueue } from "../subscriptions/watchers/call-queue.ts";
import { createWatchPresence } from "../subscriptions/watchers/watch-presence.ts";

export interface RecordedCallParts {
  /** Of changes of recorded calls, by the call. */
  waiters: KeyedListeners;
  /** The calls that this router executes. */
  executing: ReadonlySet<string>;
  inFlight: InFlightCalls;
  ownership: SessionOwners;
  messages: Messages;
  audit: Audit;
  /** Whether the principal may have calls of the external tool. */
  mayWatch: (principal: string, tool: string) => boolean;
  /** How long a watcher may have a call that it neither acknowledges nor answers. */
  acknowledgeMs: number;
  stopping: AbortSignal;
  onFault(fault: string): void;
}

/** Recorded calls, their due work, and the watchers that execute external tools. */
export async function openRecordedCalls(stack: AsyncDisposableStack, bus: Bus, parts: RecordedCallParts) {
  const { waiters, executing, inFlight, ownership, messages, audit, acknowledgeMs, stopping } = parts;
  const closing = new AbortController();
  const onFault = (fault: string) => {
    if (!closing.signal.aborted) parts.onFault(fault); // else the next router does what is left
  };
  let dueWork: DueWorkQueue | undefined;
  const deliveryIds = new DeliveryIds(
    await readSharedKey(bus, { bucket: "toolbus_router_keys", name: "delivery-ids" }),
  );
  const presence = createWatchPresence(bus);
  const queue: CallQueue & AsyncDisposable = stack.use(
    openCallQueue(bus, {
      onQueued: (queued) => dispatcher.onQueued(queued),
      onDelivered(queued, revision) {
        if (revision > 0) store.cached.put(queued.record, revision);
        return dispatcher.deliver(queued);
      },
      revisionOf: (callId) => store.cached.get(callId)?.revision ?? 0,
      readCached: (callId) => store.readCached(callId),
      onFault,
    }),
  );
  const onUndecided = (error: unknown) => onFault(`the calls of a lost watcher wait: ${messageFromUnknown(error)}`);
  const dispatcher = new Dispatcher({
    queue,
    presence,
    deliveryIds,
    mayWatch: parts.mayWatch,
    acknowledgeMs,
    store: { read: (callId) => store.read(callId) },
    onWatcherLost(taken) {
      for (const record of taken) lostWatchers.check(record, closing.signal).catch(onUndecided); // its due work decides later
    },
  });
  const store = stack.use(
    await openCallStore(bus, {
      waiters,
      isConcerned: ({ callId, watcher }) => dispatcher.isConcerned(callId, watcher),
      onDue: () => dueWork?.fetchNow(),
      onChange: (record) => (record ? dispatcher.onChanged(record) : void dispatcher.rereadAll()),
      onFault,
    }),
  );
  const lostWatchers = createLostWatchers({ store, queue, presence, audit, clock });
  const isExecuting = (callId: string) => executing.has(callId) || dispatcher.holds(callId);
  const running = stack.use(openRunningCalls(bus, { isExecuting, inFlight, ownership, onFault }));
  const dueWorker = createDueWorker({ store, running, messages, queue, lostWatchers, audit, clock });
  dueWork = stack.use(
    openDueWork(bus, {
      notify: store.announceAgain,
      check: (callId) => dueWorker.check(callId, closing.signal),
      onFault,
    }),
  );
  const fills = "calls that are open or ended within the hour";
  stack.use(openBucketEviction(bus, { place: callPlace, keptMs: KEPT_MS, mayGo: mayLeave, clock, fills, onFault }));
  const remedy = "cancel calls that nobody answers, which leave after an hour";
  const quota = stack.use(
    openQuota(bus, { ...usageByHeader(bus, callPlace), holds: fills, remedy, watermark: REFUSAL_WATERMARK, onFault }),
  );
  stack.use(openEviction(bus, { ...TASK_EVICTION, holds: "entries of tasks", onFault }));
  stack.defer(() => closing.abort());
  const absence = createAbsence(presence, clock, { stopping, onFault });
  const outside = createOutside({ store, waiters, queue, absence, audit, clock });
  const acknowledgements = createAcknowledgements({ store, deliveryIds, clock });
  const cancellation = createCancellation({ store, running, waiters, queue, quota, audit, clock });
  const taskIndex = createTaskIndex(bus, onFault);
  return { store, running, quota, taskIndex, presence, dispatcher, outside, acknowledgements, cancellation };
}
