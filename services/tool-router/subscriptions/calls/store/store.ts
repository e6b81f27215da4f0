import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createBucketIndex } from "#runtime/bus/buckets/reading/bucket-index.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import type { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { decideDueWork } from "../../../calls/due-work/due.ts";
import { type CallRecord, decodeCall, encodeCall } from "../../../calls/records/record/call-record.ts";
import { isTombstone } from "../../../calls/records/record/states.ts";
import type { CallStore, ListedCall } from "../../../calls/records/store.ts";
import { dueHeader } from "../due-work.ts";
import { type CachedCall, CachedCalls } from "./cached-calls.ts";
import { type CallChange, openCallChanges } from "./changes.ts";

export interface CallStoreOptions {
  /** Of changes of recorded calls, by the call. */
  waiters: KeyedListeners;
  /** Whether this router has to do with a call beyond those that it waits for. */
  isConcerned?: (change: CallChange) => boolean;
  /** Called when something was written that is due at once. */
  onDue?: () => void;
  /** Called with the record of such a call; with undefined when events may have been missed. */
  onChange?: (record: CallRecord | undefined) => void;
  onFault?: (fault: string) => void;
}

export interface OpenCallStore extends CallStore, Disposable {
  /** What this router knows of a call without asking; `put` adds what a peer said. */
  readonly cached: Pick<CachedCalls, "get" | "put">;
  /** Tells that calls have changed, whatever this router knows of them: whoever waits for one reads it. */
  announceAgain(callIds: readonly string[]): void;
}

export const callPlace = {
  bucket: "toolbus_calls",
  prefix: "",
  codec: { encode: encodeCall, decode: decodeCall },
  holderOf: ({ principal }: CallRecord) => principal,
} as const;

/** The recorded calls in their bucket, each written with the work that is due on it, and the events of their changes. */
export async function openCallStore(bus: Bus, options: CallStoreOptions): Promise<OpenCallStore> {
  const { waiters, onDue = () => {} } = options;
  const cached = new CachedCalls();
  const bucket = createBucket(bus, callPlace);
  const index = createBucketIndex(bus, callPlace, listedCall);

  async function read(callId: string): Promise<CachedCall | undefined> {
    const found = await bucket.read(callId);
    if (found === undefined) return undefined;
    const { value: record, revision } = found;
    cached.put(record, revision);
    return { record, revision };
  }

  /** Writes the record and the work that is due on it with `put`, which gives no revision when somebody else wrote meanwhile. */
  async function write(
    record: CallRecord,
    before: CallRecord | undefined,
    put: (headers: Record<string, string>) => Promise<number | undefined>,
  ): Promise<boolean> {
    const now = Date.now();
    const due = decideDueWork(record, before, now);
    const revision = await put(dueHeader(due));
    if (revision === undefined) return false;
    cached.put(record, revision);
    if (due.kind === "check" && due.at <= now) onDue();
    return true;
  }

  const store: CallStore = {
    read: async (callId) => (await read(callId))?.record,
    readCached: async (callId) => (cached.get(callId) ?? (await read(callId)))?.record,
    async create(given) {
      const record = dated(given);
      return write(record, undefined, (headers) => bucket.create(record.callId, record, headers));
    },
    async update(callId, decide) {
      for (let guess = cached.get(callId); ; guess = undefined) {
        const before = guess ?? (await read(callId));
        if (before === undefined) return undefined;
        const decided = decide(before.record);
        if (decided === undefined && guess !== undefined) continue; // the guess may be stale
        if (decided === undefined) return { before: before.record, record: before.record, hasChanged: false };
        const after = dated(decided);
        const replace = (headers: Record<string, string>) => bucket.replace(callId, after, before.revision, headers);
        if (await write(after, before.record, replace))
          return { before: before.record, record: after, hasChanged: true };
      }
    },
    list: index.read,
    announce(callId) {
      waiters.notify(callId); // those here need not wait for the bus
      changes.announce(callId, cached.get(callId));
    },
  };
  const changes = await openCallChanges(bus, onChangeOf(store, cached, options));
  return {
    ...store,
    cached,
    announceAgain: (callIds) => changes.announceAgain(callIds),
    [Symbol.dispose]() {
      changes[Symbol.dispose]();
      index[Symbol.dispose]();
    },
  };
}

/** As it is written now. */
function dated(record: CallRecord): CallRecord {
  return { ...record, updateTime: timestampFromMs(Date.now()) };
}

/** Wakes whoever waits here for a call that changed, and hands the records that are of concern beyond that to `onChange`. */
function onChangeOf(store: CallStore, cached: CachedCalls, options: CallStoreOptions) {
  const { waiters, isConcerned = () => false, onChange = () => {}, onFault = () => {} } = options;

  function onMissed(): void {
    cached.forgetAll();
    onChange(undefined);
    waiters.notifyAll();
  }

  async function take(change: CallChange): Promise<void> {
    const { callId, current } = change;
    const isWanted = isConcerned(change);
    if (!isWanted && !waiters.has(callId) && !cached.has(callId)) return;
    if (current === undefined) cached.forget(callId);
    else if (!cached.isKnown(callId, current.revision)) cached.put(current.record(), current.revision);
    waiters.notify(callId);
    const record = isWanted ? await store.readCached(callId) : undefined;
    if (record) onChange(record);
  }

  /** Whoever waits for the call reads its record. */
  function onUnreadable({ callId }: CallChange, error: unknown): void {
    cached.forget(callId);
    waiters.notify(callId);
    onFault(`the change of call ${callId} cannot be read: ${messageFromUnknown(error)}`);
  }

  return (change: CallChange | undefined) => {
    if (change === undefined) onMissed();
    else take(change).catch((error: unknown) => onUnreadable(change, error));
  };
}

/** A tombstone is of no call that has begun. */
function listedCall(record: CallRecord): ListedCall | undefined {
  const { state, sessionId, principal, taken, watcherPrincipal } = record;
  return isTombstone(record) ? undefined : { state, sessionId, principal, taken, watcherPrincipal };
}
