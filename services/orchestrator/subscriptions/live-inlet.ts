import type { LiveUpdate } from "../run/watch.ts";

/** After this long without news, or twice that, a watcher reads the log, in case they were lost. */
const silenceMs = 1_500;

/** A watcher that falls behind by more than this, or by so many bytes, is brought up to date from the log: it slows nobody else. */
const maxWaiting = 2_048;
const maxWaitingBytes = 256 * 1_024;

/** An update as it came, with the size of its message. */
export interface Arrival {
  readonly update: LiveUpdate;
  readonly bytes: number;
}

export type Inlet = ReturnType<typeof openInlet>;

/** Holds what came until it is asked for, up to a limit. One timer watches for silence, however much comes. */
export function openInlet() {
  let waiting: Arrival[] = [];
  let waitingBytes = 0;
  let hasLost = false;
  let hasHeard = false;
  let end: { reason: unknown } | undefined;
  let reader: (() => void) | undefined;
  const timer = setInterval(() => {
    if (!hasHeard && waiting.length === 0) lose();
    hasHeard = false;
  }, silenceMs);

  function announce(): void {
    reader?.();
    reader = undefined;
  }

  async function next(): Promise<LiveUpdate | undefined> {
    while (end === undefined && waiting.length === 0 && !hasLost) {
      await new Promise<void>((resolve) => {
        reader = resolve;
      });
    }
    if (end !== undefined) throw end.reason;
    if (hasLost) {
      hasLost = false;
      return undefined;
    }
    const first = waiting.shift();
    waitingBytes -= first?.bytes ?? 0;
    return first?.update;
  }

  /** What comes after a loss that the reader does not know of yet is lost, too: it reads the log after that. */
  function push(arrival: Arrival): void {
    hasHeard = true;
    if (hasLost || end !== undefined) return;
    const isOver = waiting.length > 0 && waitingBytes + arrival.bytes > maxWaitingBytes;
    if (isOver || waiting.length >= maxWaiting) {
      lose();
    } else {
      waiting.push(arrival);
      waitingBytes += arrival.bytes;
      announce();
    }
  }

  function lose(): void {
    waiting = [];
    waitingBytes = 0;
    hasLost = true;
    announce();
  }

  return {
    next,
    push,
    lose,
    end(reason: unknown) {
      clearInterval(timer);
      end ??= { reason };
      waiting = [];
      announce();
    },
  };
}
