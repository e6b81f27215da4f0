/** The promise, or the reason of the first of the signals that aborts if that comes first; an abort from before goes before a promise settled before. */
export async function unlessAborted<T>(
  promise: PromiseLike<T>,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<T> {
  const ends = signals.filter((signal) => signal !== undefined);
  if (ends.length === 0) return promise;
  const settled = Promise.resolve(promise);
  settled.catch(() => {}); // when a signal wins, the loser's failure concerns nobody
  const aborted = Promise.withResolvers<never>();
  const onAbort = () => aborted.reject(ends.find((signal) => signal.aborted)?.reason);
  for (const signal of ends) signal.addEventListener("abort", onAbort, { once: true });
  if (ends.some((signal) => signal.aborted)) onAbort();
  try {
    return await Promise.race([aborted.promise, settled]);
  } finally {
    for (const signal of ends) signal.removeEventListener("abort", onAbort);
  }
}
