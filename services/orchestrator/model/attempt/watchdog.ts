import { startTimer } from "#runtime/time/timer.ts";

export type Watchdog = ReturnType<typeof openWatchdog>;

/** Barks after a silence. One timer, however often something is heard. */
export function openWatchdog(silenceMs: number, bark: () => void) {
  let heardAtMs = performance.now();
  let stop = startTimer(silenceMs, look);

  function look(): void {
    const leftMs = heardAtMs + silenceMs - performance.now();
    if (leftMs <= 0) bark();
    else stop = startTimer(leftMs, look);
  }

  return {
    hear() {
      heardAtMs = performance.now();
    },
    stop: () => stop(),
  };
}
