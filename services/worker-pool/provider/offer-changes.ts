import { createChanges } from "#runtime/collections/changes.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

/** The offer, first as it is and then after each change; several changes in a row make one answer. */
export async function* watchOffers<T>(
  offer: () => T | Promise<T>,
  onChange: (listener: () => void) => () => void,
  signal: AbortSignal,
): AsyncGenerator<T> {
  const changes = createChanges();
  const stopListening = onChange(changes.tell);
  try {
    while (!signal.aborted) {
      using change = changes.next();
      yield await offer();
      await unlessAborted(change.happened, signal).catch(() => {}); // it ends
    }
  } finally {
    stopListening();
  }
}
