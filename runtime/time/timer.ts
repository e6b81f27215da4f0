/** The longest wait of `setTimeout`, about 24.8 days: a longer one fires at once. */
export const LONGEST_WAIT_MS = 2 ** 31 - 1;

export interface TimerOptions {
  /** Whether the process may end while the timer runs; no unless told. */
  isBackground?: boolean;
}

/** Calls back once after that time, however long it is, or over already; gives what stops the timer. `Infinity` never comes. */
export function startTimer(ms: number, onTime: () => void, options: TimerOptions = {}): () => void {
  let leftMs = Math.max(0, ms);
  let timer = wait();

  function wait(): NodeJS.Timeout {
    const waitMs = Math.min(leftMs, LONGEST_WAIT_MS);
    leftMs -= waitMs;
    const started = setTimeout(() => {
      if (leftMs > 0) timer = wait();
      else onTime();
    }, waitMs);
    if (options.isBackground) started.unref();
    return started;
  }

  return () => clearTimeout(timer);
}
