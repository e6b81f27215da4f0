const EXIT_CODE_BY_SIGNAL = { SIGINT: 130, SIGTERM: 143 } as const;
type StopSignalName = keyof typeof EXIT_CODE_BY_SIGNAL;

export interface StopSignal {
  /** Aborts when the process is first asked to stop; its reason says by whom. */
  signal: AbortSignal;
  /** Resolves then. */
  asked: Promise<void>;
  /** Asks from inside; once the process is asked to stop, it does nothing. */
  ask(reason: Error): void;
}

/**
 * Listens for the ways in which a process is asked to stop: SIGINT, SIGTERM, and the end of the parent's IPC channel.
 * A signal after that is told as the second one, with the code to exit with.
 */
export function openStopSignal(onSecond: (reason: string, exitCode: number) => void): StopSignal {
  const controller = new AbortController();
  const { signal } = controller;
  const asked = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

  function onSignal(name: StopSignalName): void {
    if (signal.aborted) onSecond(name, EXIT_CODE_BY_SIGNAL[name]);
    else controller.abort(new Error(name));
  }
  process.on("SIGINT", () => onSignal("SIGINT"));
  process.on("SIGTERM", () => onSignal("SIGTERM"));
  process.once("disconnect", () => controller.abort(new Error("the parent process is gone")));
  return { signal, asked, ask: (reason) => controller.abort(reason) };
}
