import { createChanges, looksAt } from "#runtime/collections/changes.ts";
import { EqualParts } from "#runtime/collections/turns/equal-parts.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

/**
 * How many wake-ups a process works on at a time.
 *
 * slots-1  What is free is shared as `EqualParts` says: what others bring begins at once, however many runs a principal has.
 * slots-2  A run that may have no slot waits in hand, without one, and gets the next that is for its principal: in the order of waiting.
 * slots-3  As many wait as there are slots: each is kept alive at the broker. Further ones are put back.
 */
export class Slots {
  readonly #count: number;
  readonly #parts: EqualParts;
  #free: number;
  readonly #freed = createChanges();
  readonly #waiting = new Map<() => void, string>();

  constructor(count: number) {
    this.#count = count;
    this.#parts = new EqualParts(count);
    this.#free = count;
  }

  /** Below zero where what was lent has come back. */
  get free(): number {
    return this.#free;
  }

  take(): void {
    this.#free -= 1;
  }

  giveBack(): void {
    this.#free += 1;
    this.#admit();
    if (this.#free > 0) this.#freed.tell();
  }

  /** For a wake-up that has a slot: whether it could neither begin nor wait for its principal's turn. */
  isFullFor(principal: string): boolean {
    return this.#waiting.size >= this.#count && this.#parts.hasPart(principal, this.#free);
  }

  /** Counts the slot of a wake-up as the principal's, until it is disposed; undefined for a principal that has its part. */
  begin(principal: string): Disposable | undefined {
    return this.#parts.hasPart(principal, this.#free) ? undefined : this.hold(principal);
  }

  /**
   * The same in the principal's turn (slots-2); undefined where too many wait (slots-3). Rejects with the signal's reason, and the
   * wake-up has a slot then as before.
   */
  async beginInTurn(principal: string, signal: AbortSignal): Promise<Disposable | undefined> {
    if (this.#waiting.size >= this.#count) return undefined;
    const turn = Promise.withResolvers<Disposable>();
    const begin = () => turn.resolve(this.hold(principal));
    this.#waiting.set(begin, principal);
    this.giveBack();
    try {
      return await unlessAborted(turn.promise, signal);
    } catch (error) {
      if (this.#waiting.delete(begin)) this.take();
      else (await turn.promise)[Symbol.dispose]();
      throw error;
    }
  }

  hold(principal: string): Disposable {
    this.#parts.add(principal, 1);
    return {
      [Symbol.dispose]: () => {
        this.#parts.add(principal, -1);
        this.#admit();
      },
    };
  }

  /**
   * For a run of this principal that only waits for one that may need the slot: until it is disposed, which waits for no slot. A bound
   * would have runs wait for one another beyond it; how many a principal has is bounded where they are accepted.
   */
  lend(principal: string): Disposable {
    this.#parts.add(principal, -1);
    this.giveBack();
    return {
      [Symbol.dispose]: () => {
        this.#parts.add(principal, 1);
        this.take();
      },
    };
  }

  async untilFree(signal: AbortSignal): Promise<void> {
    for await (const _ of looksAt(this.#freed, signal)) if (this.#free > 0) return;
  }

  /** slots-2 */
  #admit(): void {
    for (const [begin, principal] of this.#waiting) {
      if (this.#free <= 0) return;
      if (this.#parts.hasPart(principal, this.#free - 1)) continue;
      this.#waiting.delete(begin);
      this.take();
      begin();
    }
  }
}
