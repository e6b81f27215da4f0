import type { Bus } from "#runtime/bus/bus.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { CallRecord } from "../../calls/records/call-record.ts";
import type { CallStore } from "../../calls/records/records.ts";
import type { Waiters } from "../../calls/records/waiters.ts";
import { type CallChange, openCallChanges } from "./call-changes.ts";
import { openCallHolders } from "./call-holders.ts";
import type { RecentCall } from "./recent-calls.ts";
import { StoredCalls } from "./stored-calls.ts";

export interface CallStoreOptions {
  waiters: Waiters;
  /** The calls that this router executes. */
  executing: Pick<ReadonlySet<string>, "has">;
  /** Whether this router has to do with a call beyond those that it waits for. */
  isConcerned?: (news: CallChange) => boolean;
  /** Something was written that is due at once. */
  onDue?: () => void;
  /** Told what stands of such a call; undefined when news may have been missed. */
  onChange?: (record: CallRecord | undefined) => void;
  onFault?: (fault: string) => void;
}

export interface OpenCallStore extends CallStore, Disposable {
  /** What this router knows of a call without asking. */
  known(callId: string): RecentCall | undefined;
  /** This router has to do with a call; what stands of it was told by who wrote it. */
  learn(record: CallRecord, revision: number): void;
  /** Tells that calls have changed, whatever this router knows of them: who waits for one reads it. */
  announceAgain(callIds: readonly string[]): void;
}

/** The recorded calls, with the news and the questions about them that go between routers. */
export async function openCallStore(bus: Bus, calls: CallStoreOptions): Promise<OpenCallStore> {
  using stack = new DisposableStack();
  const { waiters, executing, onDue = () => {} } = calls;
  const stored = new StoredCalls(bus, onDue);
  const news = stack.use(await openCallChanges(bus, onChangeOf(stored, calls)));
  const holders = stack.use(openCallHolders(bus, executing));
  const owned = stack.move();
  return {
    read: (callId) => stored.read(callId),
    readCached: (callId) => stored.readCached(callId),
    create: (record) => stored.create(record),
    update: (callId, decide) => stored.update(callId, decide),
    list: (signal, session) => stored.list(signal, session),
    announce(callId) {
      waiters.wake(callId); // those here need not wait for the bus
      news.announce(callId, stored.recent.get(callId));
    },
    announceAgain: (callIds) => news.announceAgain(callIds),
    isHeld: holders.isHeld,
    known: (callId) => stored.recent.get(callId),
    learn: (record, revision) => stored.keep(record, revision),
    [Symbol.dispose]: () => owned.dispose(),
  };
}

/** Brings the news of calls to who waits for them here, and of those that are of concern beyond that to `onNews`. */
function onChangeOf(stored: StoredCalls, calls: CallStoreOptions): (news: CallChange | undefined) => void {
  const { recent } = stored;
  const { waiters, isConcerned = () => false, onChange: onNews = () => {}, onFault = () => {} } = calls;

  function forgetAll(): void {
    recent.forgetAll();
    onNews(undefined);
    waiters.wakeAll();
  }

  async function take(one: CallChange): Promise<void> {
    const { callId } = one;
    const isWanted = isConcerned(one);
    if (!isWanted && !waiters.has(callId) && !recent.has(callId)) return;
    const { current: stands } = one;
    if (stands === undefined) recent.forget(callId);
    else if (!recent.isKnown(callId, stands.revision)) recent.put(stands.record(), stands.revision);
    waiters.wake(callId);
    const record = isWanted ? await stored.readCached(callId) : undefined;
    if (record) onNews(record);
  }

  /** Who waits for the call reads what stands. */
  function miss({ callId }: CallChange, error: unknown): void {
    recent.forget(callId);
    waiters.wake(callId);
    onFault(`news of call ${callId} cannot be read: ${messageFromUnknown(error)}`);
  }

  return (one) => {
    if (one === undefined) forgetAll();
    else take(one).catch((error: unknown) => miss(one, error));
  };
}
