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
  const waiting = createWaiting();
  let loss: "behind" | "lost" | undefined;
  let hasHeard = false;
  let end: { reason: unknown } | undefined;
  let reader: (() => void) | undefined;
  const timer = setInterval(() => {
    if (!hasHeard && waiting.isEmpty()) drop("lost");
    hasHeard = false;
  }, silenceMs);

  function announce(): void {
    reader?.();
    reader = undefined;
  }

  async function next(): Promise<LiveUpdate | "behind" | undefined> {
    while (end === undefined && waiting.isEmpty() && loss === undefined) {
      await new Promise<void>((resolve) => {
        reader = resolve;
      });
    }
    if (end !== undefined) throw end.reason;
    if (loss === undefined) return waiting.take();
    const told = loss === "behind" ? loss : undefined;
    loss = undefined;
    return told;
  }

  /**
   * What comes after a loss that the reader does not know of yet is lost, too: it looks for it after that. Gives what the reader
   * has not read when it falls behind by this arrival.
   */
  function push(bufferedUpdate: BufferedUpdate): readonly BufferedUpdate[] | undefined {
    hasHeard = true;
    if (loss !== undefined || end !== undefined) return undefined;
    if (!waiting.add(bufferedUpdate)) return [...drop("behind"), bufferedUpdate];
    announce();
    return undefined;
  }

  function drop(why: "behind" | "lost"): BufferedUpdate[] {
    const unread = waiting.clear();
    loss = why;
    announce();
    return unread;
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
      waiting.clear();
      announce();
    },
  };
}

function createWaiting() {
  let bufferedUpdates: BufferedUpdate[] = [];
  let heldBytes = 0;
  return {
    isEmpty() {
      return bufferedUpdates.length === 0;
    },
    /** Says whether there was room. */
    add(bufferedUpdate: BufferedUpdate): boolean {
      const isOver = bufferedUpdates.length > 0 && heldBytes + bufferedUpdate.bytes > maxWaitingBytes;
      if (isOver || bufferedUpdates.length >= maxWaiting) return false;
      bufferedUpdates.push(bufferedUpdate);
      heldBytes += bufferedUpdate.bytes;
      return true;
    },
    take(): LiveUpdate | undefined {
      const first = bufferedUpdates.shift();
      heldBytes -= first?.bytes ?? 0;
      return first?.update;
    },
    /** Gives what there was. */
    clear(): BufferedUpdate[] {
      const all = bufferedUpdates;
      bufferedUpdates = [];
      heldBytes = 0;
      return all;
    },
  };
}
