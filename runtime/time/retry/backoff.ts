export interface Backoff {
  /** How long to wait before the next attempt: each time twice as long, up to the longest wait. */
  next(): number;
  /** The attempt succeeded: start again from the shortest wait. */
  reset(): void;
}

export interface BackoffOptions {
  initialMs: number;
  maxMs: number;
  /** The share of each wait that is random, 0 to 1; 0.2 unless told. Waits never exceed `maxMs`. */
  jitter?: number;
  /** A number in [0, 1); for tests. */
  random?: () => number;
}

export function createBackoff(options: BackoffOptions): Backoff {
  let attempts = 0;
  return {
    next() {
      attempts += 1;
      return backoffMs(attempts, options);
    },
    reset() {
      attempts = 0;
    },
  };
}

/** How long to wait after so many attempts, for who counts them elsewhere. */
export function backoffMs(attempts: number, { initialMs, maxMs, jitter = 0.2, random = Math.random }: BackoffOptions) {
  const waitMs = Math.min(initialMs * 2 ** (attempts - 1), maxMs);
  return Math.round(waitMs * (1 - jitter * random()));
}
