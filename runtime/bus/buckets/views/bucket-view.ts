import { createChanges } from "../../../collections/changes.ts";
import { messageFromUnknown } from "../../../failure/failure.ts";
import { comesWithin } from "../../../time/comes-within.ts";
import { retryWhile } from "../../../time/retry/retry.ts";
import { unlessAborted } from "../../../time/unless-aborted.ts";
import { callPatience } from "../../link/call-patience.ts";
import type { Bucket, Change } from "../bucket.ts";
import { sharedReading } from "../reading/shared-reading.ts";
import { openFollower } from "./follower.ts";

const RECHECK_MS = 500;
const comparing = { initialMs: 200, maxMs: 5_000 };

/** What a bucket holds of one kind, in memory. */
export class BucketView<T> {
  readonly #entries = new Map<string, { value: T; revision: number }>();
  #version = 0;
  #reached = 0;
  readonly changes = createChanges();

  /** Grows with each change. */
  get version(): number {
    return this.#version;
  }

  /** How far of the bucket is seen here. */
  get reachedRevision(): number {
    return this.#reached;
  }

  get(key: string): { value: T; revision: number } | undefined {
    return this.#entries.get(key);
  }

  /** By key. */
  get entries(): [string, { value: T; revision: number }][] {
    return [...this.#entries].sort(([one], [other]) => (one < other ? -1 : 1));
  }

  /** What the bucket tells, in its order; where a value cannot be read, the one before it stays. */
  apply(change: Change<T>): void {
    const { key, revision } = change;
    if (change.kind === "set") this.#entries.set(key, { value: change.value, revision });
    if (change.kind === "removed") this.#entries.delete(key);
    this.#reached = Math.max(this.#reached, revision);
    this.#notify();
  }

  /** Forgets what was seen up to a revision and does not stand any more. */
  keepOnly(keys: ReadonlySet<string>, seenUpTo: number): void {
    const gone = [...this.#entries].filter(([key, { revision }]) => revision <= seenUpTo && !keys.has(key));
    for (const [key] of gone) this.#entries.delete(key);
    if (gone.length > 0) this.#notify();
  }

  /** Waits until everything up to a revision is seen here. */
  async reached(revision: number, signal?: AbortSignal): Promise<void> {
    if (this.#reached >= revision) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    using _ = this.changes.listen(() => {
      if (this.#reached >= revision) resolve();
    });
    await unlessAborted(promise, signal);
  }

  #notify(): void {
    this.#version += 1;
    this.changes.tell();
  }
}

/** A view that follows its bucket for as long as it is open. */
export interface FollowedView<T> extends AsyncDisposable {
  readonly view: BucketView<T>;
  /** Waits until the view shows every write that was acknowledged before, by whomever. */
  caughtUp(signal?: AbortSignal): Promise<void>;
}

/** Resolves when the view holds what the bucket held. */
export async function openBucketView<T>(bucket: Bucket<T>, onFault: (fault: string) => void): Promise<FollowedView<T>> {
  const view = new BucketView<T>();
  const closing = new AbortController();
  let whole = Promise.withResolvers<void>();
  whole.resolve();

  function interrupt(): void {
    whole.resolve(); // who waited looks again
    whole = Promise.withResolvers<void>();
    whole.promise.catch(() => {}); // whoever waits hears it; nobody has to
  }

  async function whenWhole(): Promise<void> {
    let waited: typeof whole | undefined;
    while (waited !== whole) {
      waited = whole;
      await waited.promise;
    }
  }

  /** BUCKET-6: of what was removed meanwhile there may be no trace. Until the two are compared, readers wait. */
  async function forgetRemoved(): Promise<void> {
    const { signal } = closing;
    const mine = whole;
    const compare = async () => {
      const seenUpTo = view.reachedRevision; // the removal of what comes later is told
      view.keepOnly(await bucket.keys(signal), seenUpTo);
    };
    const onRetry = (error: unknown) => onFault(`${bucket.name} cannot be compared: ${messageFromUnknown(error)}`);
    await retryWhile(() => mine === whole, compare, { ...comparing, signal, onRetry }).then(mine.resolve, mine.reject);
  }

  /** The message of a removal may go before it is seen: then the last one that is left is as far as there is to see. */
  async function reach(revision: number): Promise<void> {
    let last = revision;
    while (!(await comesWithin(RECHECK_MS, view.reached(last, closing.signal))))
      last = Math.min(last, await bucket.lastRevision(closing.signal));
  }

  const onChange = (change: Change<T>) => view.apply(change);
  const hooks = { onInterrupted: interrupt, onResumed: () => void forgetRemoved() };
  await using stack = new AsyncDisposableStack();
  const follower = stack.use(await openFollower(bucket, { from: "start", onChange, onFault, ...hooks }));
  stack.defer(() => closing.abort(new Error(`${bucket.name} is followed no longer`)));
  const readSeen = sharedReading(async () => {
    const last = await bucket.lastRevision(closing.signal);
    await whenWhole();
    await reach(last);
  });
  await reach(follower.openedAt);
  const owned = stack.move();
  return {
    view,
    caughtUp: (signal) => callPatience.limit(`reading ${bucket.name}`, unlessAborted(readSeen(), signal)),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
