/**
 * How many wake-ups a process works on at a time. Of the last eighth of the slots, a principal gets none while its runs have an equal
 * part of all: what others bring begins at once, however many runs it has.
 */
export class Slots {
  readonly #count: number;
  #free: number;
  #whenFree = Promise.withResolvers<void>();
  readonly #heldBy = new Map<string, number>();

  constructor(count: number) {
    this.#count = count;
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

  /** For a wake-up that has a slot, and whose run is this principal's. The equal part is one of a principal more than have runs at work. */
  isFullFor(principal: string): boolean {
    const held = this.#heldBy.get(principal);
    return (
      held !== undefined && this.#free < Math.floor(this.#count / 8) && held >= this.#count / (this.#heldBy.size + 1)
    );
  }

  /** Counts a slot that was taken as the principal's, until it is disposed. */
  hold(principal: string): Disposable {
    this.#add(principal, 1);
    return { [Symbol.dispose]: () => this.#add(principal, -1) };
  }

  /**
   * For a run of this principal that only waits for one that may need the slot: until it is disposed, which waits for no slot. A bound
   * would have runs wait for one another beyond it; how many a principal has is bounded where they are accepted.
   */
  lend(principal: string): Disposable {
    this.#add(principal, -1);
    this.giveBack();
    return {
      [Symbol.dispose]: () => {
        this.#add(principal, 1);
        this.take();
      },
    };
  }

  async untilFree(): Promise<void> {
    while (this.#free <= 0) await this.#whenFree.promise;
  }

  #add(principal: string, slots: number): void {
    const held = (this.#heldBy.get(principal) ?? 0) + slots;
    if (held === 0) this.#heldBy.delete(principal);
    else this.#heldBy.set(principal, held);
  }
}
