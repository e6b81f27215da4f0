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
  let loss: "behind" | "lost" | undefined;
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

  async function next(): Promise<LiveUpdate | "behind" | undefined> {
    while (end === undefined && waiting.length === 0 && loss === undefined) {
      await new Promise<void>((resolve) => {
        reader = resolve;
      });
    }
    if (end !== undefined) throw end.reason;
    if (loss !== undefined) {
      const told = loss === "behind" ? loss : undefined;
      loss = undefined;
      return told;
    }
    const first = waiting.shift();
    waitingBytes -= first?.bytes ?? 0;
    return first?.update;
  }

  /** What comes after a loss that the reader does not know of yet is lost, too: it looks for it after that. */
  function push(arrival: Arrival): void {
    hasHeard = true;
    if (loss !== undefined || end !== undefined) return;
    const isOver = waiting.length > 0 && waitingBytes + arrival.bytes > maxWaitingBytes;
    if (isOver || waiting.length >= maxWaiting) {
      drop("behind");
    } else {
      waiting.push(arrival);
      waitingBytes += arrival.bytes;
      announce();
    }
  }

  function drop(why: "behind" | "lost"): void {
    waiting = [];
    waitingBytes = 0;
    loss = why;
    announce();
  }

  function lose(): void {
    drop("lost");
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
