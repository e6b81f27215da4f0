import type { Stored } from "#runtime/bus/buckets/bucket.ts";
import { KeyedListeners } from "#runtime/collections/keyed-listeners.ts";
import type { SessionRecord } from "./session-record.ts";

export type SessionChange = Stored<SessionRecord>;

/** The changes of one session, each once and in order. */
export interface ChangeReader extends Disposable {
  /** Resolves when there is a change that was not taken. */
  readonly arrived: Promise<void>;
  take(): SessionChange | undefined;
  /** Wakes the reader without a change, because something else has happened. */
  wake(): void;
}

/** The changes of sessions, for the readers of one session and for the subscribers of all. */
export class SessionChanges {
  readonly #readers = new KeyedListeners<[SessionChange]>();
  readonly #subscribers: ((change: SessionChange) => void)[] = [];

  publish(change: SessionChange): void {
    for (const subscriber of this.#subscribers) subscriber(change);
    this.#readers.notify(change.key, change);
  }

  subscribe(subscriber: (change: SessionChange) => void): void {
    this.#subscribers.push(subscriber);
  }

  follow(sessionId: string): ChangeReader {
    const unread: SessionChange[] = [];
    let arrived = Promise.withResolvers<void>();
    const wake = () => arrived.resolve();
    const reading = this.#readers.add(sessionId, (change) => {
      unread.push(change);
      wake();
    });
    return {
      get arrived() {
        return arrived.promise;
      },
      wake,
      take() {
        const change = unread.shift();
        if (unread.length === 0) arrived = Promise.withResolvers<void>();
        return change;
      },
      [Symbol.dispose]: () => reading[Symbol.dispose](),
    };
  }

  /** Reads until there is something, again after each change of the session. Rejects with the signal's reason. */
  until<T>(sessionId: string, read: () => Promise<T | undefined>, signal: AbortSignal): Promise<T> {
    return this.#readers.until(sessionId, read, signal);
  }
}
