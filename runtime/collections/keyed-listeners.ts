import { unlessAborted } from "../time/unless-aborted.ts";
import { TransientMap } from "./maps/transient-map.ts";

export class KeyedListeners<Told extends unknown[] = []> {
  readonly #listeners = new TransientMap<Set<(...told: Told) => void>>();

  add(key: string, listener: (...told: Told) => void): Disposable {
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners.add(listener));
    return {
      [Symbol.dispose]: () => {
        listeners.delete(listener);
        if (listeners.size === 0 && this.#listeners.get(key) === listeners) this.#listeners.delete(key);
      },
    };
  }

  has(key: string): boolean {
    return this.#listeners.has(key);
  }

  notify(key: string, ...told: Told): void {
    for (const listener of [...(this.#listeners.get(key) ?? [])]) listener(...told);
  }

  /** Of all keys, as after an interruption, when changes may have been missed. */
  notifyAll(...told: Told): void {
    for (const key of this.#listeners.keys()) this.notify(key, ...told);
  }

  /** Resolves at the next change after this call. Disposing ends the waiting. */
  next(key: string): Disposable & { readonly happened: Promise<void> } {
    const { promise: happened, resolve } = Promise.withResolvers<void>();
    const listening = this.add(key, () => resolve());
    return { happened, [Symbol.dispose]: () => listening[Symbol.dispose]() };
  }

  /**
   * Reads until there is something, again after each change of the key. It listens before it reads, so that no change is missed.
   * Rejects with the signal's reason.
   */
  async until<T>(key: string, read: () => Promise<T | undefined>, signal: AbortSignal): Promise<T> {
    for (;;) {
      signal.throwIfAborted();
      using change = this.next(key);
      const found = await read();
      if (found !== undefined) return found;
      await unlessAborted(change.happened, signal);
    }
  }
}
