/**
 * How long a call waits for a bus that does not answer.
 *
 * patience-1  A call, whose caller waits, has 6.5 s in all: with what it does besides, its caller knows after 10 s. Electing another leader
 *     takes 4 to 10 s, mostly less than this.
 * patience-2  Only waiting for a bus that did not answer at once is spent; what was waited for at the same time, once.
 * patience-3  After 10 s without waiting, what is waited for is another outage: the call has all of its patience again.
 * patience-4  Whoever the call asks gets what is left of it, once some is spent.
 * patience-5  What a service does by itself, outside of a call, waits as long as it takes.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { Failure } from "../../failure/failure.ts";
import { comesWithin } from "../../time/comes-within.ts";

const patienceMs = 6_500; // patience-1

/** The time that one answer may take. */
export const attemptMs = 1_000;

const restedMs = 10_000; // patience-3

/** What is left of a call's patience, and from when to when it waited last. */
const calls = new AsyncLocalStorage<{ leftMs: number; waitedFromMs: number; waitedAtMs: number }>();

function currentCall() {
  const call = calls.getStore();
  if (call && performance.now() - call.waitedAtMs > restedMs) call.leftMs = patienceMs; // patience-3
  return call;
}

export const callPatience = {
  /** Does the work of a call, whose caller has so much patience left. */
  run<T>(work: () => T, callerLeftMs = patienceMs): T {
    const nowMs = performance.now();
    return calls.run({ leftMs: Math.min(callerLeftMs, patienceMs), waitedFromMs: nowMs, waitedAtMs: nowMs }, work);
  },

  /** Does what outlives the call that began it: patience-5. */
  exit<T>(work: () => T): T {
    return calls.exit(work);
  },

  /** Enough for one attempt at least; without limit outside of a call. */
  get leftMs(): number {
    const call = currentCall();
    return call === undefined ? Number.POSITIVE_INFINITY : Math.max(call.leftMs, attemptMs);
  },

  /** What whoever is asked next gets of it; undefined as long as none is spent: patience-4. */
  get sharedMs(): number | undefined {
    const leftMs = currentCall()?.leftMs ?? patienceMs;
    return leftMs < patienceMs ? Math.max(Math.round(leftMs), 0) : undefined;
  },

  /** Whether another attempt has no time. */
  get isOver(): boolean {
    return (currentCall()?.leftMs ?? patienceMs) < attemptMs;
  },

  /** Spends what the call has waited since then: patience-2. */
  spend(sinceMs: number): void {
    const call = currentCall();
    if (call === undefined) return;
    if (sinceMs > call.waitedAtMs) call.waitedFromMs = call.waitedAtMs = sinceMs;
    const [fromMs, nowMs] = [Math.min(sinceMs, call.waitedFromMs), performance.now()];
    call.leftMs -= nowMs - call.waitedAtMs + call.waitedFromMs - fromMs;
    Object.assign(call, { waitedFromMs: fromMs, waitedAtMs: nowMs });
  },

  /** The same of what may have waited for the bus: where it took no longer than one answer may, it has not. */
  spendIfLong(sinceMs: number): void {
    if (performance.now() - sinceMs > attemptMs) callPatience.spend(sinceMs);
  },

  /**
   * Whether the promise comes before the patience is over. A call that has spent none waits as long as it takes; what took long is spent,
   * as others may wait for the bus in its place.
   */
  async outlasts(promise: Promise<unknown>): Promise<boolean> {
    const leftMs = callPatience.sharedMs ?? Number.POSITIVE_INFINITY;
    const sinceMs = performance.now();
    const came = leftMs > 0 && (await comesWithin(Math.max(leftMs, attemptMs), promise));
    if (Number.isFinite(leftMs)) callPatience.spend(sinceMs);
    else callPatience.spendIfLong(sinceMs);
    return came;
  },

  /** The promise, and in a call `unavailable` when it does not come in time. */
  async limit<T>(what: string, promise: Promise<T>): Promise<T> {
    const { leftMs } = callPatience;
    if (!Number.isFinite(leftMs)) return promise;
    const sinceMs = performance.now();
    const came = await comesWithin(leftMs, promise);
    callPatience.spendIfLong(sinceMs);
    if (came) return promise;
    throw new Failure("unavailable", `${what}: the bus does not answer: it has no quorum, or its disk is full`, {
      reason: "BUS_UNAVAILABLE",
    });
  },
};
