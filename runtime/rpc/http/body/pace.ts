/** How fast a body must come, so that nobody holds a place by sending it drop by drop. */
export interface PaceLimits {
  /** What every body has, however slow its client. */
  readonly graceMs: number;
  /** Beyond that, the time grows with what has come; the mean rate must be this one. */
  readonly bytesPerSecond: number;
  /** Between two parts of a body that is a stream of messages, which may go on for ever. */
  readonly idleMs: number;
}

/** Watches one body; calls `onSlow` once when its time is over. */
export class Pace {
  readonly #limits: PaceLimits;
  readonly #isEndless: boolean;
  readonly #onSlow: () => void;
  #since = performance.now();
  #bytes = 0;
  #timer: NodeJS.Timeout;
  #stoppedAt = 0;

  constructor(limits: PaceLimits, isEndless: boolean, onSlow: () => void) {
    this.#limits = limits;
    this.#isEndless = isEndless;
    this.#onSlow = onSlow;
    this.#timer = this.#look(isEndless ? limits.idleMs : limits.graceMs);
  }

  came(bytes: number): void {
    this.#bytes += bytes;
    if (this.#isEndless) this.#since = performance.now();
  }

  /** The client waits for us now, and not the other way round. */
  holdBack(): void {
    clearTimeout(this.#timer);
    this.#stoppedAt = performance.now();
  }

  goOn(): void {
    this.#since += performance.now() - this.#stoppedAt;
    this.#timer = this.#look(this.#limits.graceMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #look(ms: number): NodeJS.Timeout {
    return setTimeout(() => {
      const leftMs = this.#allowedMs() - (performance.now() - this.#since);
      if (leftMs > 0) this.#timer = this.#look(leftMs);
      else this.#onSlow();
    }, Math.ceil(ms));
  }

  #allowedMs(): number {
    const { idleMs, graceMs, bytesPerSecond } = this.#limits;
    return this.#isEndless ? idleMs : graceMs + (this.#bytes * 1_000) / bytesPerSecond;
  }
}
