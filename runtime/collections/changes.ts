import { unlessAborted } from "../time/unless-aborted.ts";

/** Tells whoever waits or listens that something is different; what it is, most of them look up themselves. */
export interface Changes<Told extends unknown[] = []> {
  tell(...told: Told): void;
  /** Calls back at each change until it is disposed. */
  listen(listener: (...told: Told) => void): Disposable;
  /** Whether anybody waits or listens. */
  readonly isFollowed: boolean;
  /**
   * Take it before looking, so that no change falls between. Disposing ends the waiting: a promise that many wait for would hold each of
   * them until it is resolved.
   */
  next(): Disposable & { readonly happened: Promise<void> };
}

export function createChanges<Told extends unknown[] = []>(): Changes<Told> {
  const listeners = new Set<(...told: Told) => void>();
  const listen = (listener: (...told: Told) => void) => {
    const own = (...told: Told) => listener(...told);
    listeners.add(own);
    return { [Symbol.dispose]: () => void listeners.delete(own) };
  };
  return {
    tell(...told) {
      for (const listener of [...listeners]) listener(...told);
    },
    listen,
    get isFollowed() {
      return listeners.size > 0;
    },
    next() {
      const { promise: happened, resolve } = Promise.withResolvers<void>();
      const listening = listen(() => {
        listening[Symbol.dispose]();
        resolve();
      });
      return { happened, [Symbol.dispose]: listening[Symbol.dispose] };
    },
  };
}

/** A turn for looking at once, and one after each change, none of which falls between. Rejects with the signal's reason. */
export async function* looksAt(changes: Pick<Changes, "next">, signal: AbortSignal): AsyncGenerator<void> {
  for (;;) {
    using change = changes.next();
    yield;
    await unlessAborted(change.happened, signal);
  }
}
