/** The promise, or the signal's reason if that comes first; without a signal the promise. */
export async function unlessAborted<T>(promise: PromiseLike<T>, signal?: AbortSignal): Promise<T> {
  if (signal === undefined) return promise;
  const settled = Promise.resolve(promise);
  settled.catch(() => {}); // when the signal wins, the loser's failure concerns nobody
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([settled, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
