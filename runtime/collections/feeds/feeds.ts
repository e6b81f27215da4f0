import { addAbortListener } from "node:events";

/** What may wait for a reader: bytes for each that reads the same, within a bound, since one that has stopped holds them all by itself. */
const mostWaiting = 2_048;
const mostWaitingBytes = 256 * 1_024;
const mostOfFeedBytes = 4 * 1_024 * 1_024;

export interface FeedReader<T, S> extends Disposable {
  /** What the first reader opened. */
  readonly source: S;
  /** What comes next; undefined once after a loss. Rejects with the reason when the feed or the signal ends. */
  next(): Promise<T | undefined>;
}

/**
 * Sources that are shared, by key: the first reader opens one, the last one closes it. All get the same items, each
 * at its own pace: a reader that does not read costs the others nothing, and loses what is more than a bound.
 */
export class Feeds<T, S extends Disposable = Disposable> {
  readonly #feeds = new Map<string, OpenFeed<T, S>>();

  join(key: string, signal: AbortSignal, open: (feed: Feed<T>) => S): FeedReader<T, S> {
    const known = this.#feeds.get(key);
    const feed = known === undefined || known.hasEnded ? new OpenFeed(open) : known;
    this.#feeds.set(key, feed);
    const unread = new Unread(() => feed.latest);
    feed.readers.add(unread);
    const ending = addAbortListener(signal, () => unread.end(signal.reason));
    return {
      source: feed.source,
      next: () => unread.next(),
      [Symbol.dispose]: () => {
        ending[Symbol.dispose]();
        unread.end(undefined);
        if (!feed.readers.delete(unread) || feed.readers.size > 0) return;
        feed.source[Symbol.dispose]();
        if (this.#feeds.get(key) === feed) this.#feeds.delete(key);
      },
    };
  }
}

/** What comes from one source to all who read it. */
export type Feed<T> = Pick<OpenFeed<T, Disposable>, "push" | "lose" | "remind" | "end">;

class OpenFeed<T, S extends Disposable> {
  readonly readers = new Set<Unread<T>>();
  readonly source: S;
  latest: Place<T> = { count: 0, bytes: 0 };
  hasEnded = false;

  constructor(open: (feed: Feed<T>) => S) {
    this.source = open(this);
  }

  push(item: T, bytes: number): void {
    const place = { count: this.latest.count + 1, bytes: this.latest.bytes + bytes };
    this.latest.following = { item, place };
    this.latest = place;
    const mostBytes = Math.min(mostWaitingBytes * this.readers.size, mostOfFeedBytes);
    for (const reader of this.readers) reader.onGiven(mostBytes);
  }

  /** Something may be missing: each reader is told, and what waits for it goes. */
  lose(): void {
    for (const reader of this.readers) reader.lose();
  }

  /** The same for those for whom nothing waits. */
  remind(): void {
    for (const reader of this.readers) if (reader.isEmpty) reader.lose();
  }

  /** Whoever joins later opens another one. */
  end(reason: unknown): void {
    this.hasEnded = true;
    for (const reader of this.readers) reader.end(reason);
  }
}

/** A place between the items that a feed gives; what follows is held for as long as somebody stands there or before. */
interface Place<T> {
  /** How many items were given by then, and how many bytes they have. */
  readonly count: number;
  readonly bytes: number;
  following?: { readonly item: T; readonly place: Place<T> };
}

/** What a feed has given and one reader has not taken yet. */
class Unread<T> {
  /** Undefined after a loss that the reader does not know of yet: it looks for what comes then, too. */
  #place: Place<T> | undefined;
  readonly #latest: () => Place<T>;
  #end: { reason: unknown } | undefined;
  #wake = () => {};

  constructor(latest: () => Place<T>) {
    this.#latest = latest;
    this.#place = latest();
  }

  get isEmpty(): boolean {
    return this.#place !== undefined && this.#place.following === undefined;
  }

  /** Undefined when something was lost. */
  async next(): Promise<T | undefined> {
    while (this.#end === undefined && this.isEmpty) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#end !== undefined) throw this.#end.reason;
    const following = this.#place?.following;
    this.#place = following?.place ?? this.#latest();
    return following?.item;
  }

  /** Something was given. A reader for whom more waits than that loses it; one item by itself may be as large as it is. */
  onGiven(mostBytes: number): void {
    const { count, bytes } = this.#latest();
    const { count: taken, bytes: takenBytes } = this.#place ?? { count, bytes };
    if (count - taken > 1 && (count - taken > mostWaiting || bytes - takenBytes > mostBytes)) this.lose();
    else this.#wake();
  }

  lose(): void {
    this.#place = undefined;
    this.#wake();
  }

  end(reason: unknown): void {
    this.#end ??= { reason };
    this.lose();
  }
}
