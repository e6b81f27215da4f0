/** Every run in hand beats three times in a takeover's time: with more of them lent, a process would do little else. */
const mostLent = (count: number) => Math.max(1_024, 4 * count);

/** How many wake-ups a process works on at a time. */
export class Slots {
  #free: number;
  #lendable: number;
  #whenFree = Promise.withResolvers<void>();

  constructor(count: number) {
    this.#free = count;
    this.#lendable = mostLent(count);
  }

  /** Below zero where what was lent has come back. */
  get free(): number {
    return this.#free;
  }

  take(): void {
    this.#free -= 1;
    if (this.#free === 0) this.#whenFree = Promise.withResolvers();
  }

  giveBack(): void {
    this.#free += 1;
    if (this.#free > 0) this.#whenFree.resolve();
  }

  /** For who only waits for a run that may need the slot: until it is disposed, which waits for no slot. So many are lent at most. */
  lend(): Disposable {
    const lent = new DisposableStack();
    if (this.#lendable === 0) return lent;
    this.#lendable -= 1;
    this.giveBack();
    lent.defer(() => {
      this.#lendable += 1;
      this.take();
    });
    return lent;
  }

  async untilFree(): Promise<void> {
    while (this.#free <= 0) await this.#whenFree.promise;
  }
}
