/** A reader for whom more waits than this, or more bytes, loses it. */
const mostWaiting = 2_048;
const mostWaitingBytes = 256 * 1_024;

/** Holds what came until it is asked for, up to a limit. */
export class Unread<T> {
  #waiting: { readonly item: T; readonly bytes: number }[] = [];
  #waitingBytes = 0;
  #isLost = false;
  #end: { reason: unknown } | undefined;
  #wake = () => {};

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Undefined when something was lost. */
  async next(): Promise<T | undefined> {
    while (this.#end === undefined && this.isEmpty && !this.#isLost) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#end !== undefined) throw this.#end.reason;
    this.#isLost = false; // nothing waits then
    const first = this.#waiting.shift();
    this.#waitingBytes -= first?.bytes ?? 0;
    return first?.item;
  }

  /** What comes after a loss that the reader does not know of yet is lost, too: it looks for it after that. */
  push(item: T, bytes: number): void {
    if (this.#isLost || this.#end !== undefined) return;
    if (this.#hasRoom(bytes)) {
      this.#waiting.push({ item, bytes });
      this.#waitingBytes += bytes;
      this.#wake();
    } else this.lose();
  }

  lose(): void {
    this.#isLost = true;
    this.#clear();
  }

  end(reason: unknown): void {
    this.#end ??= { reason };
    this.#clear();
  }

  /** One by itself may be as large as it is. */
  #hasRoom(bytes: number): boolean {
    if (this.isEmpty) return true;
    return this.#waitingBytes + bytes <= mostWaitingBytes && this.#waiting.length < mostWaiting;
  }

  #clear(): void {
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#wake();
  }
}
