import { unlessAborted } from "#runtime/time/unless-aborted.ts";

/** Tells whoever waits that something is different; what it is, they look up themselves. */
export interface Changes {
  tell(): void;
  /** Resolves at the next change. Take it before looking, so that no change falls between. */
  next(): Promise<void>;
}

export function createChanges(): Changes {
  let coming = Promise.withResolvers<void>();
  return {
    tell() {
      const { resolve } = coming;
      coming = Promise.withResolvers<void>();
      resolve();
    },
    next: () => coming.promise,
  };
}

/** As `unlessAborted`; a signal that had aborted before goes before a promise that had resolved. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return signal.aborted ? Promise.reject(signal.reason) : unlessAborted(promise, signal);
}
