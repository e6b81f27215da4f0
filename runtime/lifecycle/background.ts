/**
 * Work that goes on by itself until it is disposed: then its signal aborts, and its end is waited for. What goes wrong in it is
 * for the work to tell.
 */
export function openBackground(work: (signal: AbortSignal) => Promise<void>): AsyncDisposable {
  const closing = new AbortController();
  const working = work(closing.signal);
  return {
    async [Symbol.asyncDispose]() {
      closing.abort(new Error("this process stops"));
      await working;
    },
  };
}
