import { TransientMap } from "#runtime/collections/transient-map.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

/** Waiters for changes of recorded calls in this process. */
export interface Waiters {
  wake(callId: string): void;
  has(callId: string): boolean;
  /** After a loss of the bus, when changes may have been missed. */
  wakeAll(): void;
  /**
   * Reads until there is something, again after each change. It subscribes before it reads, so that no change is missed.
   * Rejects with the signal's reason.
   */
  until<T>(callId: string, read: () => Promise<T | undefined>, signal: AbortSignal): Promise<T>;
}

export function createWaiters(): Waiters {
  const waiting = new TransientMap<Set<() => void>>();
  const wake = (callId: string) => {
    for (const listener of waiting.get(callId) ?? []) listener();
  };

  function register(callId: string, listener: () => void): () => void {
    const listeners = waiting.get(callId) ?? new Set();
    waiting.set(callId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && waiting.get(callId) === listeners) waiting.delete(callId);
    };
  }

  return {
    wake,
    has: (callId) => waiting.has(callId),
    wakeAll() {
      for (const callId of waiting.keys()) wake(callId);
    },
    async until(callId, read, signal) {
      let changed = Promise.withResolvers<void>();
      const unregister = register(callId, () => changed.resolve());
      try {
        for (;;) {
          signal.throwIfAborted();
          changed = Promise.withResolvers<void>();
          const found = await read();
          if (found !== undefined) return found;
          await unlessAborted(changed.promise, signal);
        }
      } finally {
        unregister();
      }
    },
  };
}
