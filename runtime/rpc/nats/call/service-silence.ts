import type { Timings } from "./timings.ts";

/*
 * Whether a service has an instance that takes requests and says nothing: one that is frozen, or whose link is cut. nats-server gives
 * it its share of requests until its own pings have gone unanswered.
 *
 * silence-1  An instance that is well speaks of every call after `heartbeatMs`. One that has not for half as long again is silent.
 * silence-2  From then on requests are confirmed (client/confirmed-call.ts): those that meet a silent instance go to another one.
 * silence-3  That ends when many in a row were taken by the first instance that was asked, and some time has passed: with one of two
 *     instances silent, hardly ever before it is gone.
 */

const CLEAR_AFTER_MS = 10_000;
const CLEAR_AFTER_CALLS = 20;

/** silence-1 */
export function isSilent(quietMs: number, { heartbeatMs }: Timings): boolean {
  return quietMs >= 1.5 * heartbeatMs;
}

export class ServiceSilence {
  #noticedAt = Number.NEGATIVE_INFINITY;
  #takenAtOnce = CLEAR_AFTER_CALLS;

  /** An instance said nothing when another would have. */
  notice(): void {
    this.#noticedAt = performance.now();
    this.#takenAtOnce = 0;
  }

  /** The first instance that was asked took a request. */
  tookAtOnce(): void {
    this.#takenAtOnce += 1;
  }

  get isSuspected(): boolean {
    if (this.#takenAtOnce < CLEAR_AFTER_CALLS) return true;
    return performance.now() - this.#noticedAt < CLEAR_AFTER_MS;
  }
}
