/** A signal that aborts with the first of its sources, or when it is told to. */
export interface Ending extends Disposable {
  readonly signal: AbortSignal;
  end(reason?: unknown): void;
}

/**
 * Holds its sources until it is disposed, and they hold it: what `AbortSignal.any` gives may be collected while somebody
 * waits for it.
 */
export function openEnding(...sources: readonly AbortSignal[]): Ending {
  const controller = new AbortController();
  const onAbort = () => controller.abort(sources.find(({ aborted }) => aborted)?.reason);
  for (const source of sources) source.addEventListener("abort", onAbort, { once: true });
  if (sources.some(({ aborted }) => aborted)) onAbort();
  return {
    signal: controller.signal,
    end: (reason) => controller.abort(reason),
    [Symbol.dispose]() {
      for (const source of sources) source.removeEventListener("abort", onAbort);
    },
  };
}
