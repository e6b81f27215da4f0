import { refuseShare } from "#runtime/failure/share.ts";

/** What one principal may have of this gateway at once. */
export interface ShareLimits {
  readonly requestsPerSecond: number;
  readonly calls: number;
  readonly streams: number;
}

/** Requests of a principal that is quiet add up to those of so many seconds. */
const BURST_SECONDS = 2;

interface Held {
  calls: number;
  streams: number;
  /** Requests that may be made at once, as of `at`. */
  tokens: number;
  at: number;
}

/**
 * SEC-6: what each principal may have of the gateway, so that none is without room because of another. Nothing is kept of a principal
 * that has nothing open and made no request for a while.
 */
export class Shares {
  readonly #limits: ShareLimits;
  readonly #now: () => number;
  readonly #held = new Map<string, Held>();
  #sweptAt = 0;

  constructor(limits: ShareLimits, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** Counts a request until what it gives is called. Refuses one that goes beyond a share, and says which. */
  take(principal: string, kind: "calls" | "streams"): () => void {
    const held = this.#of(principal);
    const limit = this.#limits[kind];
    if (held.tokens < 1) {
      const { requestsPerSecond } = this.#limits;
      refuseShare(principal, {
        of: "this gateway",
        share: "requests a second",
        limit: requestsPerSecond,
        retryMs: 1_000 / requestsPerSecond,
      });
    }
    if (held[kind] >= limit)
      refuseShare(principal, { of: "this gateway", share: `${kind} in flight`, limit, retryMs: 1_000 });
    held.tokens -= 1;
    held[kind] += 1;
    let isOpen = true;
    return () => {
      if (isOpen) held[kind] -= 1;
      isOpen = false;
    };
  }

  #of(principal: string): Held {
    const now = this.#now();
    this.#sweep(now);
    const full = this.#limits.requestsPerSecond * BURST_SECONDS;
    const held = this.#held.get(principal) ?? { calls: 0, streams: 0, tokens: full, at: now };
    held.tokens = Math.min(full, held.tokens + ((now - held.at) / 1_000) * this.#limits.requestsPerSecond);
    held.at = now;
    this.#held.set(principal, held);
    return held;
  }

  /** A quiet principal has all its requests again, as one that was never seen. */
  #sweep(now: number): void {
    if (now - this.#sweptAt < 60_000) return;
    this.#sweptAt = now;
    for (const [principal, { calls, streams, at }] of this.#held) {
      if (calls + streams === 0 && now - at > BURST_SECONDS * 1_000) this.#held.delete(principal);
    }
  }
}
