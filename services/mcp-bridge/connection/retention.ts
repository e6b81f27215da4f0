export interface RetentionOptions {
  /** How long a result is kept for a repeated question. */
  retentionMs?: number;
  maxRetained?: number;
  maxRetainedLength?: number;
}

interface Retained {
  readonly until: number;
  readonly length: number;
  readonly forget: () => void;
}

/** Results that are kept for repeated questions, those of all connections together: the oldest are forgotten. */
export class Retention {
  readonly #retained: Retained[] = [];
  readonly #options: Required<RetentionOptions>;
  #length = 0;

  constructor(options: RetentionOptions = {}) {
    this.#options = { retentionMs: 60_000, maxRetained: 10_000, maxRetainedLength: 64 * 2 ** 20, ...options };
  }

  /** `forget` is called once, when the result is to be kept no longer. */
  add(length: number, forget: () => void): void {
    this.#retained.push({ until: performance.now() + this.#options.retentionMs, length, forget });
    this.#length += length;
    this.forgetOld();
  }

  forgetOld(): void {
    const { maxRetained, maxRetainedLength } = this.#options;
    const now = performance.now();
    for (let [oldest] = this.#retained; oldest; [oldest] = this.#retained) {
      const isOver = this.#retained.length > maxRetained || this.#length > maxRetainedLength;
      if (!isOver && oldest.until > now) return;
      this.#retained.shift();
      this.#length -= oldest.length;
      oldest.forget();
    }
  }
}
