/**
 * Who holds how many of a number of places. Of the last eighth of them, a principal gets none while it has an equal part of all, that
 * of one principal more than hold some: what others bring begins at once, however much one has.
 */
export class EqualParts {
  readonly #count: number;
  readonly #heldBy = new Map<string, number>();
  #total = 0;

  constructor(count: number) {
    this.#count = count;
  }

  get total(): number {
    return this.#total;
  }

  get isFull(): boolean {
    return this.#total >= this.#count;
  }

  /** Whether there is no place that it may take. What is asked in nobody's name may have the last one. */
  isFullFor(principal: string): boolean {
    return this.isFull || (principal !== "" && this.hasPart(principal, this.#count - this.#total - 1));
  }

  heldBy(principal: string): number {
    return this.#heldBy.get(principal) ?? 0;
  }

  /** Whether it may take none of the places, where so many are left beside the one that it would take. */
  hasPart(principal: string, left: number): boolean {
    const held = this.#heldBy.get(principal);
    if (held === undefined || left >= Math.floor(this.#count / 8)) return false;
    return held >= this.#count / (this.#heldBy.size + 1);
  }

  add(principal: string, places: number): void {
    const held = this.heldBy(principal) + places;
    this.#total += places;
    if (held === 0) this.#heldBy.delete(principal);
    else this.#heldBy.set(principal, held);
  }
}
