import { startTimer } from "#runtime/time/timer.ts";

export type Watchdog = ReturnType<typeof openWatchdog>;

/** Calls `onSilence` after a silence. One timer, however often it is reset. */
export function openWatchdog(silenceMs: number, onSilence: () => void) {
  let lastAtMs = performance.now();
  let stop = startTimer(silenceMs, look);

  function look(): void {
    const leftMs = lastAtMs + silenceMs - performance.now();
    if (leftMs <= 0) onSilence();
    else stop = startTimer(leftMs, look);
  }

  return {
    reset() {
      lastAtMs = performance.now();
    },
    stop: () => stop(),
  };
}
