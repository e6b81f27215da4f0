import type { Duration } from "@bufbuild/protobuf/wkt";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Waiter } from "../requests/calls.ts";

export interface PatienceParts {
  clock: Clock;
  /** Aborts when this instance stops. */
  stopping: AbortSignal;
}

/** Longer than a router needs to notice that another one is lost, and to ask in its place. */
const NEXT_WAITER_MS = 5_000;

/**
 * Waits for a call on behalf of a router. One that cancels ends the waiting. One that is lost has canceled nothing: the next one
 * may ask for the call, for at least as long as the call may be without an instance, which it was told. Only then, or once
 * another one waits for it here, the waiting ends. An instance that stops leaves that to the next one.
 */
export async function waitOnBehalf<T>(
  { clock, stopping }: PatienceParts,
  { signal, tell }: Waiter,
  wait: (waiter: Waiter) => Promise<T>,
): Promise<T> {
  const leaving = new AbortController();
  let joined = new AbortController();
  let grace: Duration | undefined;
  const unlessGone = () => {}; // who has left is told nothing, and waited for by nobody
  const unlessStopped = () => {}; // the calls of this instance wait for the next one
  const waiting = wait({
    signal: leaving.signal,
    tell(event) {
      if (event.case === "held") grace = event.value.takeoverGrace;
      const told = tell(event);
      return told && unlessAborted(told, signal).catch(unlessGone);
    },
    onOthers(are) {
      if (are) joined.abort();
      else joined = new AbortController();
    },
  });
  waiting.catch(unlessGone);
  try {
    return await unlessAborted(waiting, signal);
  } catch (error) {
    if (signal.aborted) nextWaiter().then(() => leaving.abort(signal.reason), unlessStopped);
    throw error;
  }

  async function nextWaiter(): Promise<void> {
    const isLost = failureFromConnectError(signal.reason).code === "unavailable";
    if (!isLost) return;
    const isJoined = joined.signal;
    using ending = openEnding(stopping, isJoined);
    const waitMs = Math.max(NEXT_WAITER_MS, msFromDuration(grace) ?? 0);
    await clock.delay(waitMs, ending.signal).catch((error: unknown) => {
      if (!isJoined.aborted) throw error;
    });
  }
}
