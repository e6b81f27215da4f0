/** The reason of who ends without one, as that of `AbortController`; made once, since each would have a stack of its own. */
const ENDED = new DOMException("This operation was aborted", "AbortError");

/** A signal that aborts with the first of its sources, or when it is told to. */
export interface Ending extends Disposable {
  readonly signal: AbortSignal;
  end(reason?: unknown): void;
}

/**
 * Its sources hold it, and it holds them, until it is disposed; those of `AbortSignal.any` hold what that gives weakly.
 * Whoever is done disposes it (`using`), for a source may live as long as the process.
 */
export function openEnding(...sources: readonly (AbortSignal | undefined)[]): Ending {
  const held = sources.filter((source) => source !== undefined);
  const controller = new AbortController();
  const letGo = () => {
    for (const source of held) source.removeEventListener("abort", onAbort);
  };
  const onAbort = () => end(held.find(({ aborted }) => aborted)?.reason);
  const end = (reason: unknown = ENDED) => {
    letGo();
    controller.abort(reason);
  };
  for (const source of held) source.addEventListener("abort", onAbort, { once: true });
  if (held.some(({ aborted }) => aborted)) onAbort();
  return { signal: controller.signal, end, [Symbol.dispose]: letGo };
}
