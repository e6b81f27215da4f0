import type { Permits } from "./permits.ts";

/** The places that a call has taken. */
export class Places {
  readonly #principal: string;
  readonly #taken = new Map<Permits, () => void>();
  #asks = 0;
  #isOver = false;

  constructor(principal: string) {
    this.#principal = principal;
  }

  async acquire(permits: Permits, signal: AbortSignal): Promise<void> {
    this.#taken.set(permits, await permits.acquire(signal, this.#principal));
  }

  /** Its places are free while a call waits for what it asks for: that may need them. The call then goes on, whether or not one is free. */
  async leaveFor<T>(asking: () => Promise<T>): Promise<T> {
    if (this.#asks++ === 0) this.giveBack({ isOver: this.#isOver });
    try {
      return await asking();
    } finally {
      if (--this.#asks === 0 && !this.#isOver)
        for (const permits of this.#taken.keys()) this.#taken.set(permits, permits.take(this.#principal));
    }
  }

  giveBack({ isOver = true } = {}): void {
    this.#isOver = isOver;
    for (const giveBack of this.#taken.values()) giveBack();
  }
}
