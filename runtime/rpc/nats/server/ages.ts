import type { Sent } from "../frame/opening.ts";

/*
 * How long openings were on their way, found without comparing the clocks of two processes.
 *
 * ages-1  Each process stamps its openings by a clock of its own that nobody sets, and of which only differences count.
 * ages-2  The least distance of that clock to ours, of late, is that of an opening that came at once. What another one has beyond it is
 *     the time that it waited somewhere.
 * ages-3  Clocks drift: a distance counts for two windows at most. The first opening by a clock has no age.
 */

const WINDOW_MS = 60_000;
/** A window ends early when so many clocks have been seen in it: that bounds what is remembered. */
const MOST_CLOCKS = 10_000;

export class Ages {
  #least = new Map<string, number>();
  #before = new Map<string, number>();
  #since = performance.now();

  /** How long an opening was on its way, in ms; 0 when that is not known. */
  ageOf(sent: Sent | undefined, now: number): number {
    if (sent === undefined) return 0;
    if (now - this.#since > WINDOW_MS || this.#least.size > MOST_CLOCKS) this.#turn(now);
    const distance = now - sent.ms;
    const least = this.#least.get(sent.clock) ?? Number.POSITIVE_INFINITY;
    if (distance < least) this.#least.set(sent.clock, distance);
    return distance - Math.min(distance, least, this.#before.get(sent.clock) ?? distance);
  }

  #turn(now: number): void {
    this.#before = this.#least;
    this.#least = new Map();
    this.#since = now;
  }
}
