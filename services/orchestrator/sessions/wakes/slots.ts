/** How many wake-ups a process works on at a time. */
export class Slots {
  #free: number;
  #whenFree = Promise.withResolvers<void>();

  constructor(count: number) {
    this.#free = count;
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

  /**
   * For who only waits for a run that may need the slot: until it is disposed, which waits for no slot. A bound would have runs wait for
   * one another beyond it; how many a principal has is bounded where they are accepted.
   */
  lend(): Disposable {
    this.giveBack();
    return { [Symbol.dispose]: () => this.take() };
  }

  async untilFree(): Promise<void> {
    while (this.#free <= 0) await this.#whenFree.promise;
  }
}
