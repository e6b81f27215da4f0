/** Tells whether this process was asleep: stopped by a signal, or kept from its event loop, for so long that others may have taken it for dead. */
export interface Wakefulness extends Disposable {
  /** False from the end of such a sleep until the listener has been told. */
  readonly isAwake: boolean;
  /** How long all such sleeps were. */
  readonly sleptMs: number;
}

const tickMs = 50;

export function openWakefulness(options: { sleepMs: number; onSleep?: () => void }): Wakefulness {
  let tickedAt = performance.now();
  let sleptMs = 0;
  const sinceTickMs = () => performance.now() - tickedAt;
  const isAwake = () => sinceTickMs() < options.sleepMs;
  const timer = setInterval(() => {
    const hasSlept = !isAwake();
    if (hasSlept) sleptMs += sinceTickMs();
    tickedAt = performance.now();
    if (hasSlept) options.onSleep?.();
  }, tickMs);
  timer.unref();
  return {
    get isAwake() {
      return isAwake();
    },
    get sleptMs() {
      return sleptMs + (isAwake() ? 0 : sinceTickMs());
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
