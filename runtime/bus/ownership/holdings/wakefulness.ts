/** Tells whether this process was asleep: stopped by a signal, or kept from its event loop, for so long that others may have taken it for dead. */
export interface Wakefulness extends Disposable {
  /** False from the end of such a sleep until the listener has been told. */
  readonly isAwake: boolean;
}

const tickMs = 50;

export function openWakefulness(options: { sleepMs: number; onSleep: () => void }): Wakefulness {
  let tickedAt = performance.now();
  const isAwake = () => performance.now() - tickedAt < options.sleepMs;
  const timer = setInterval(() => {
    const hasSlept = !isAwake();
    tickedAt = performance.now();
    if (hasSlept) options.onSleep();
  }, tickMs);
  timer.unref();
  return {
    get isAwake() {
      return isAwake();
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
