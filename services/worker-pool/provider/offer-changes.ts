import { unlessAborted } from "#runtime/time/unless-aborted.ts";

/** The offer, first as it is and then after each change; several changes in a row make one answer. */
export async function* watchOffers<T>(
  offer: () => T | Promise<T>,
  onChange: (listener: () => void) => () => void,
  signal: AbortSignal,
): AsyncGenerator<T> {
  let changed = Promise.withResolvers<void>();
  const stopListening = onChange(() => changed.resolve());
  try {
    while (!signal.aborted) {
      changed = Promise.withResolvers<void>();
      yield await offer();
      await unlessAborted(changed.promise, signal).catch(() => {}); // it ends
    }
  } finally {
    stopListening();
  }
}
