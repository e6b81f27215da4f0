import type { LiveUpdate } from "../../runs/watch/watch.ts";

/** After this long without updates, or twice that, a watcher reads the log, in case they were lost. */
const silenceMs = 1_500;

/** A watcher that falls behind by more than this, or by so many bytes, is brought up to date from the log: it slows nobody else. */
const maxWaiting = 2_048;
const maxWaitingBytes = 256 * 1_024;

/** An update as it came, with the size of its message. */
export interface BufferedUpdate {
  readonly update: LiveUpdate;
  readonly bytes: number;
}

export type UpdateBuffer = ReturnType<typeof openUpdateBuffer>;

/** Holds what came until it is asked for, up to a limit. One timer watches for silence, however much comes. */
export function openUpdateBuffer() {
  let waiting: BufferedUpdate[] = [];
  let waitingBytes = 0;
  let loss: "behind" | "lost" | undefined;
  let hasHeard = false;
  let end: { reason: unknown } | undefined;
  let reader: (() => void) | undefined;
  const timer = setInterval(() => {
    if (!hasHeard && waiting.length === 0) drop("lost");
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
    if (loss === undefined) return take();
    const told = loss === "behind" ? loss : undefined;
    loss = undefined;
    return told;
  }

  function take(): LiveUpdate | undefined {
    const first = waiting.shift();
    waitingBytes -= first?.bytes ?? 0;
    return first?.update;
  }

  function hasRoom({ bytes }: BufferedUpdate): boolean {
    return waiting.length === 0 || (waitingBytes + bytes <= maxWaitingBytes && waiting.length < maxWaiting);
  }

  /**
   * What comes after a loss that the reader does not know of yet is lost, too: it looks for it after that. Gives what the reader
   * has not read when it falls behind by this arrival.
   */
  function push(bufferedUpdate: BufferedUpdate): readonly BufferedUpdate[] | undefined {
    hasHeard = true;
    if (loss !== undefined || end !== undefined) return undefined;
    if (!hasRoom(bufferedUpdate)) return [...drop("behind"), bufferedUpdate];
    waiting.push(bufferedUpdate);
    waitingBytes += bufferedUpdate.bytes;
    announce();
    return undefined;
  }

  /** Gives what was not read. */
  function clear(): BufferedUpdate[] {
    const unread = waiting;
    waiting = [];
    waitingBytes = 0;
    return unread;
  }

  function drop(why: "behind" | "lost"): BufferedUpdate[] {
    loss = why;
    announce();
    return clear();
  }

  return {
    next,
    push,
    /** Whether it has fallen behind, and its reader does not know of it yet. */
    isBehind() {
      return loss === "behind";
    },
    lose(): void {
      drop("lost");
    },
    end(reason: unknown) {
      clearInterval(timer);
      end ??= { reason };
      clear();
      announce();
    },
  };
}
