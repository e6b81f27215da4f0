/** The promise, or the reason of the first of the signals that aborts if that comes first; an abort from before goes before a promise settled before. */
export function unlessAborted<T>(
  promise: PromiseLike<T>,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<T> {
  const ends = signals.filter((signal) => signal !== undefined);
  return new Promise((resolve, reject) => {
    const letGo = () => {
      for (const signal of ends) signal.removeEventListener("abort", onAbort);
    };
    const onAbort = () => {
      letGo();
      reject(ends.find((signal) => signal.aborted)?.reason);
    };
    for (const signal of ends) signal.addEventListener("abort", onAbort);
    if (ends.some((signal) => signal.aborted)) onAbort();
    promise.then(letGo, letGo);
    promise.then(resolve, reject);
  });
}
