/** Ctrl-C, or the end that a supervisor asks for. The first is `signal`, so that what is under way ends in order; the second ends the process. */
export function openInterruption(): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController();
  const interrupt = () => controller.abort(new Error("interrupted"));
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  return {
    signal: controller.signal,
    [Symbol.dispose]: () => void process.off("SIGINT", interrupt).off("SIGTERM", interrupt),
  };
}
