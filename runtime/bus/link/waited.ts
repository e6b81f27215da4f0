import { AsyncLocalStorage } from "node:async_hooks";
import { Failure } from "../../failure/failure.ts";
import { comesWithin } from "../../time/comes-within.ts";

/**
 * How long a call waits in all for a bus that does not answer: with what it does besides, its caller knows after 10 s. Electing another
 * leader takes 4 to 10 s, mostly less than this.
 */
const patienceMs = 6_500;

/** The time that one answer may take. */
export const attemptMs = 1_000;

/** After so long without waiting, what is waited for is another outage. */
const restedMs = 10_000;

/** What is left of a call's patience, and from when to when it waited last. */
const waiting = new AsyncLocalStorage<{ leftMs: number; waitedFromMs: number; waitedAtMs: number }>();

function patienceOfCall() {
  const call = waiting.getStore();
  if (call && performance.now() - call.waitedAtMs > restedMs) call.leftMs = patienceMs;
  return call;
}

/**
 * Does the work of a call, whose caller waits: what the bus does not answer in time ends it. What a service does by itself waits on.
 * A caller that has waited already waits for less.
 */
export function whileWaitedFor<T>(work: () => T, callerLeftMs = patienceMs): T {
  const nowMs = performance.now();
  return waiting.run({ leftMs: Math.min(callerLeftMs, patienceMs), waitedFromMs: nowMs, waitedAtMs: nowMs }, work);
}

/** Does what outlives the call that began it. */
export function whileNobodyWaits<T>(work: () => T): T {
  return waiting.exit(work);
}

/** How long the running call may still wait for the bus; without limit outside of a call. */
export function patienceLeftMs(): number {
  const call = patienceOfCall();
  return call === undefined ? Number.POSITIVE_INFINITY : Math.max(call.leftMs, attemptMs);
}

/** Likewise, where it has waited already: who is asked next shares what is left. */
export function sharedPatienceMs(): number | undefined {
  const leftMs = patienceOfCall()?.leftMs ?? patienceMs;
  return leftMs < patienceMs ? Math.max(Math.round(leftMs), 0) : undefined;
}

/** Whether the running call has waited for the bus so long that another attempt has no time. */
export function isPatienceOver(): boolean {
  return (patienceOfCall()?.leftMs ?? patienceMs) < attemptMs;
}

/** Counts what the running call has waited since then, for a bus that did not answer at once; what it waited for at the same time, once. */
export function countWaiting(sinceMs: number): void {
  const call = patienceOfCall();
  if (call === undefined) return;
  if (sinceMs > call.waitedAtMs) call.waitedFromMs = call.waitedAtMs = sinceMs;
  const [fromMs, nowMs] = [Math.min(sinceMs, call.waitedFromMs), performance.now()];
  call.leftMs -= nowMs - call.waitedAtMs + call.waitedFromMs - fromMs;
  Object.assign(call, { waitedFromMs: fromMs, waitedAtMs: nowMs });
}

/**
 * Whether the promise comes in time for the running call. One that nothing has kept waiting waits as long as it takes; what took long
 * counts, as others may wait for the bus in its place.
 */
export async function comesInTime(promise: Promise<unknown>): Promise<boolean> {
  const leftMs = sharedPatienceMs() ?? Number.POSITIVE_INFINITY;
  const sinceMs = performance.now();
  const came = leftMs > 0 && (await comesWithin(Math.max(leftMs, attemptMs), promise));
  if (performance.now() - sinceMs > attemptMs || Number.isFinite(leftMs)) countWaiting(sinceMs);
  return came;
}

/** The promise, and in a call `unavailable` when it does not come in time. */
export async function inTime<T>(what: string, promise: Promise<T>): Promise<T> {
  const leftMs = patienceLeftMs();
  if (!Number.isFinite(leftMs)) return promise;
  const sinceMs = performance.now();
  const came = await comesWithin(leftMs, promise);
  if (performance.now() - sinceMs > attemptMs) countWaiting(sinceMs);
  if (came) return promise;
  throw new Failure("unavailable", `${what}: the bus does not answer: it has no quorum, or its disk is full`, {
    reason: "BUS_UNAVAILABLE",
  });
}
