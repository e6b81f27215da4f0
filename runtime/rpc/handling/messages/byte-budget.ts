/** Bytes that several may hold together. */
export class ByteBudget {
  readonly limit: number;
  #used = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  /** How much of `wanted` there is, at least `floor`. */
  offer(wanted: number, floor = 0): number {
    return Math.max(Math.min(wanted, this.limit - this.#used), floor, 0);
  }

  /** Takes what is offered. */
  take(wanted: number, floor = 0): number {
    const taken = this.offer(wanted, floor);
    this.#used += taken;
    return taken;
  }

  giveBack(bytes: number): void {
    this.#used -= bytes;
  }
}
