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
  let isLost = false;
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
    while (end === undefined && waiting.length === 0 && !isLost) {
      await new Promise<void>((resolve) => {
        reader = resolve;
      });
    }
    if (end !== undefined) throw end.reason;
    isLost = false; // nothing waits then
    const first = waiting.shift();
    waitingBytes -= first?.bytes ?? 0;
    return first?.update;
  }

  function hasRoom({ bytes }: BufferedUpdate): boolean {
    return waiting.length === 0 || (waitingBytes + bytes <= maxWaitingBytes && waiting.length < maxWaiting);
  }

  /** What comes after a loss that the reader does not know of yet is lost, too: it looks for it after that. */
  function push(bufferedUpdate: BufferedUpdate): void {
    hasHeard = true;
    if (isLost || end !== undefined) return;
    if (!hasRoom(bufferedUpdate)) {
      lose();
      return;
    }
    waiting.push(bufferedUpdate);
    waitingBytes += bufferedUpdate.bytes;
    announce();
  }

  function clear(): void {
    waiting = [];
    waitingBytes = 0;
  }

  function lose(): void {
    isLost = true;
    clear();
    announce();
  }

  return {
    next,
    push,
    lose,
    end(reason: unknown) {
      clearInterval(timer);
      end ??= { reason };
      clear();
      announce();
    },
  };
}
