import { openEnding } from "#runtime/time/ending.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { Deadline } from "./deadline.ts";

/** The end of a call's time, by the router. */
export interface TimeLimit extends Disposable {
  /** Aborts when the time is over, or as the call's own signal does. */
  readonly signal: AbortSignal;
  readonly isOver: boolean;
  /** When the call's time is over, and when it is in any case, where progress extends it. */
  readonly at: number;
  readonly latestAt: number | undefined;
  /** Progress puts the end off, where the call says how far. */
  extend(): void;
  /** Until it is disposed, no time goes by but that of the run. */
  pause(): Disposable;
}

interface LimitedCall {
  readonly deadline: Deadline;
  readonly runDeadline: number | undefined;
}

export function openTimeLimit(
  { deadline, runDeadline }: LimitedCall,
  graceMs: number,
  callSignal: AbortSignal,
): TimeLimit {
  const ending = openEnding(callSignal);
  const { signal } = ending;
  let isOver = false;
  const end = () => {
    isOver = !signal.aborted;
    ending.end(new DOMException("the time is over", "TimeoutError"));
  };
  const runEndsAt = runDeadline === undefined ? Number.POSITIVE_INFINITY : runDeadline + 1_000;
  const startUntil = (at: number) => startTimer(Math.max(1, Math.min(at, runEndsAt) - Date.now()), end);
  let [at, latestAt] = [deadline.at, deadline.latestAt];
  let isPaused = false;
  let stop = startUntil(at + graceMs);
  const restart = () => {
    stop();
    stop = startUntil(isPaused ? Number.POSITIVE_INFINITY : at + graceMs);
  };
  return {
    signal,
    get isOver() {
      return isOver;
    },
    get at() {
      return at;
    },
    get latestAt() {
      return latestAt;
    },
    extend() {
      if (latestAt === undefined || signal.aborted || isPaused) return;
      at = Math.min(latestAt, Date.now() + deadline.timeoutMs);
      restart();
    },
    pause() {
      const pausedAt = Date.now();
      isPaused = true;
      restart();
      return {
        [Symbol.dispose]() {
          const passedMs = Date.now() - pausedAt;
          at += passedMs;
          if (latestAt !== undefined) latestAt += passedMs;
          isPaused = false;
          if (!signal.aborted) restart();
        },
      };
    },
    [Symbol.dispose]() {
      stop();
      ending[Symbol.dispose]();
    },
  };
}
