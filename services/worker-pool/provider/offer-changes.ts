/** The offer, first as it is and then after each change; several changes in a row make one answer. */
export async function* watchOffers<T>(
  offer: () => T | Promise<T>,
  onChange: (listener: () => void) => () => void,
  signal: AbortSignal,
): AsyncGenerator<T> {
  let hasChanged = true;
  let wake = () => {};
  const notice = () => {
    hasChanged = true;
    wake();
  };
  const stopListening = onChange(notice);
  signal.addEventListener("abort", notice, { once: true });
  try {
    while (!signal.aborted) {
      if (hasChanged) {
        hasChanged = false;
        yield await offer();
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    stopListening();
    signal.removeEventListener("abort", notice);
  }
}
