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

/** Resolves with the promise, or rejects with the signal's reason if that comes first. Leaves no listener behind. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
