import type { Stored } from "#runtime/bus/buckets/bucket.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
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
  readonly #readers = new Map<string, Set<(change: SessionChange) => void>>();
  readonly #subscribers: ((change: SessionChange) => void)[] = [];

  publish(change: SessionChange): void {
    for (const subscriber of this.#subscribers) subscriber(change);
    for (const reader of [...(this.#readers.get(change.key) ?? [])]) reader(change);
  }

  subscribe(subscriber: (change: SessionChange) => void): void {
    this.#subscribers.push(subscriber);
  }

  follow(sessionId: string): ChangeReader {
    const unread: SessionChange[] = [];
    let arrived = Promise.withResolvers<void>();
    const wake = () => arrived.resolve();
    const reader = (change: SessionChange) => {
      unread.push(change);
      wake();
    };
    const readers = this.#readers.get(sessionId) ?? new Set();
    this.#readers.set(sessionId, readers.add(reader));
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
      [Symbol.dispose]: () => {
        readers.delete(reader);
        if (readers.size === 0 && this.#readers.get(sessionId) === readers) this.#readers.delete(sessionId);
      },
    };
  }

  /** Reads until there is something, again after each change of the session. Rejects with the signal's reason. */
  async until<T>(sessionId: string, read: () => Promise<T | undefined>, signal: AbortSignal): Promise<T> {
    using reader = this.follow(sessionId);
    for (;;) {
      const found = await read();
      if (found !== undefined) return found;
      await unlessAborted(reader.arrived, signal);
      while (reader.take() !== undefined);
    }
  }
}
