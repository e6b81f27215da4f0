import type { SessionWake } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import type { Clock } from "#runtime/time/clock.ts";

/** After so long a wake-up comes again that came before its events. */
export const againMs = 50;

/** A wake-up in the hands of this process, which keeps it alive until it is put down in one of three ways. */
export interface Wake {
  readonly message: SessionWake;
  /** The same in every delivery. */
  readonly id: number;
  readonly ageMs: number;
  /** From 1. */
  readonly deliveryCount: number;
  /** What it was for is done, or another wake-up answers for it. */
  done(): void;
  /** Comes again after a while, here or elsewhere. */
  later(delayMs: number): void;
  /** Another process holds it: it stays as it is. */
  leave(): void;
}

export interface WakeQueue {
  /** Acknowledged when this resolves. */
  send(wake: { sessionId: string; runId: string; eventCount: number }): Promise<void>;
  /** Up to so many wake-ups for this process, as they come; ends after a while, or when the signal aborts. */
  next(atMost: number, signal: AbortSignal): AsyncIterable<Wake>;
}

export interface Timers {
  /** Wakes the session at that time or soon after it, whatever dies until then; replaces the run's former time. */
  set(run: { sessionId: string; runId: string }, atMs: number): Promise<void>;
}

/** A time that has just passed, or that a clock behind the broker's found to be yet to come, is waited for anew. */
const soonestMs = 250;

export async function wakeAt(
  { timers, clock }: { timers: Timers; clock: Clock },
  run: { sessionId: string; runId: string },
  atMs: number,
): Promise<void> {
  await timers.set(run, Math.max(atMs, clock.now() + soonestMs));
}

/** What a process says about a session that another asks it for. */
export type HolderAnswer =
  /** It works on the session and will look at it again. */
  | "taken"
  /** It does, and the wake-up is its own: the asking process must not acknowledge it. */
  | "leave"
  /** It does not work on the session. */
  | "free";

export interface Holders {
  /** Asks a process for a session; `gone` when it does not answer, `unsure` when the bus has just returned. */
  ask(instance: string, sessionId: string, wakeId: number): Promise<HolderAnswer | "gone" | "unsure">;
  /** Makes a process look at a session again, if it works on it. Sent once: if it is lost, the next append shows the same. */
  notify(instance: string, sessionId: string): void;
  /** Asks the process that works on a run to publish the text so far. */
  requestSnapshot(instance: string, runId: string): void;
}
