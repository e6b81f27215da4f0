import type { Bus } from "#runtime/bus/bus.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openBackground } from "#runtime/lifecycle/background.ts";
import { systemClock as clock } from "#runtime/time/clock.ts";
import { createKeeper } from "../calls/due-work/due-work.ts";
import { KEPT_MS, keepSweeping } from "../calls/due-work/retention.ts";
import { Outside } from "../calls/execute/outside.ts";
import type { Flights } from "../calls/in-flight.ts";
import type { Messages } from "../calls/messages.ts";
import type { Waiters } from "../calls/records/waiters.ts";
import { createAcknowledgements } from "../calls/requests/acknowledgements.ts";
import { createCancellation } from "../calls/requests/cancellation.ts";
import { createAbsence } from "../calls/watchers/absence.ts";
import { Desk } from "../calls/watchers/dispatcher.ts";
import { createLostWatchers } from "../calls/watchers/lost-watchers.ts";
import type { Offers } from "../calls/watchers/watching.ts";
import type { Audit } from "../catalogue/audit/audit.ts";
import type { Ownership } from "../sessions/ownership.ts";
import { openCallStore } from "../subscriptions/calls/call-store.ts";
import { type CallDuties, openCallDuties } from "../subscriptions/calls/due-work.ts";
import { createCallRoom } from "../subscriptions/calls/retention.ts";
import { openRunningCalls } from "../subscriptions/calls/running-calls.ts";
import { openOffers } from "../subscriptions/watchers/offers.ts";
import { createWatchPresence } from "../subscriptions/watchers/watch-presence.ts";

export interface RecordedCallParts {
  waiters: Waiters;
  /** The calls that this router executes. */
  executing: ReadonlySet<string>;
  flights: Flights;
  ownership: Ownership;
  messages: Messages;
  audit: Audit;
  /** How long a watcher may have a call that it neither acknowledges nor answers. */
  acknowledgeMs: number;
  onFault(fault: string): void;
}

/** Recorded calls with all that happens to them between routers, watchers and those who answer. */
export async function openRecordedCalls(bus: Bus, parts: RecordedCallParts) {
  const { waiters, executing, flights, ownership, messages, audit, acknowledgeMs, onFault } = parts;
  await using stack = new AsyncDisposableStack();
  const closing = new AbortController();
  let duties: CallDuties | undefined;
  const presence = createWatchPresence(bus);
  const offers: Offers & AsyncDisposable = stack.use(
    openOffers(bus, {
      onOffer: (offer) => desk.receive(offer),
      onHanded(offer, revision) {
        if (revision > 0) store.learn(offer.record, revision);
        return desk.take(offer);
      },
      revisionOf: (callId) => store.known(callId)?.revision ?? 0,
      glance: (callId) => store.glance(callId),
      onFault,
    }),
  );
  const onUndecided = (error: unknown) => {
    if (!closing.signal.aborted) onFault(`the calls of a lost watcher wait: ${messageFromUnknown(error)}`);
  };
  const desk = new Desk({
    offers,
    presence,
    acknowledgeMs,
    store: { read: (callId) => store.read(callId) },
    onLeft(taken) {
      for (const record of taken) lostWatchers.check(record, closing.signal).catch(onUndecided); // its duty decides later
    },
  });
  const store = stack.use(
    await openCallStore(bus, {
      waiters,
      executing: { has: (callId) => executing.has(callId) || desk.holds(callId) },
      isConcerned: ({ callId, watcher }) => desk.isConcerned(callId, watcher),
      onDue: () => duties?.hurry(),
      onNews: (record) => (record ? desk.hear(record) : void desk.recheck()),
      onFault(fault) {
        if (!closing.signal.aborted) onFault(fault);
      },
    }),
  );
  const lostWatchers = createLostWatchers({ store, offers, presence, audit, clock });
  const keeper = createKeeper({ store, messages, offers, lostWatchers, audit, clock });
  duties = stack.use(
    await openCallDuties(bus, {
      tell: store.tellAgain,
      look: (callId) => keeper.look(callId, closing.signal),
      onFault,
    }),
  );
  const retention = { room: createCallRoom(bus), clock, keptMs: KEPT_MS, onFault };
  stack.use(openBackground((signal) => keepSweeping(retention, signal)));
  const running = stack.use(openRunningCalls(bus, { flights, ownership, onFault }));
  stack.defer(() => closing.abort());
  const outside = new Outside({
    store,
    waiters,
    offers,
    absence: createAbsence(presence, clock, onFault),
    audit,
    clock,
  });
  const acknowledgements = createAcknowledgements(store, clock);
  const cancellation = createCancellation({ store, running, offers, audit, clock });
  const owned = stack.move();
  return {
    store,
    presence,
    desk,
    outside,
    acknowledgements,
    cancellation,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
