import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { CallRecord } from "../records/call-record.ts";

/*
 * The bucket of calls refuses when it is full, and with it every call that is recorded. So what has ended leaves before its age
 * when room gets short.
 *
 * T1  Only calls that have ended leave, those that ended longest ago first, and only while the bucket is filled above its mark.
 * T2  A call stays for `keptMs` after it ended: so long its id may be repeated without its being carried out once more.
 * T3  Each router looks at moments of its own. What two of them remove at a time is removed once: a removal is a compare-and-set.
 */

/** The bucket of recorded calls, as far as its room is concerned. */
export interface RetentionStore {
  /** How much of it is filled, of 1. */
  filled(): Promise<number>;
  /** All records, the one that was written longest ago first. */
  records(signal: AbortSignal): AsyncIterable<WrittenRecord>;
  /** Whether it was removed: it still had that revision. */
  remove(written: WrittenRecord): Promise<boolean>;
}

export interface WrittenRecord {
  readonly record: CallRecord;
  readonly revision: number;
  readonly writtenMs: number;
}

export interface RetentionOptions {
  readonly store: RetentionStore;
  readonly clock: Clock;
  readonly keptMs: number;
  onFault(fault: string): void;
}

/** How long an ended call stays, whatever the room. */
export const KEPT_MS = 3_600_000;
const HIGH_MARK = 0.75;
const LOW_MARK = 0.7;
const BETWEEN_MEASURES = 128;
const PAUSE_MS = 10_000;

/** Gives how many were removed. */
export async function sweepCalls(
  { store: room, clock, keptMs }: RetentionOptions,
  signal: AbortSignal,
): Promise<number> {
  if ((await room.filled()) < HIGH_MARK) return 0;
  const beforeMs = clock.now() - keptMs;
  let removed = 0;
  for await (const written of room.records(signal)) {
    if (written.writtenMs > beforeMs) break; // T2
    if (!hasEnded(written.record) || !(await room.remove(written))) continue; // T1, T3
    removed += 1;
    if (removed % BETWEEN_MEASURES === 0 && (await room.filled()) < LOW_MARK) break;
  }
  return removed;
}

/** Sweeps again and again until the signal aborts. */
export async function keepSweeping(options: RetentionOptions, signal: AbortSignal): Promise<void> {
  const { store: room, clock, onFault } = options;
  let isReported = false;
  while (!signal.aborted) {
    await clock.delay(PAUSE_MS * (0.5 + Math.random()), signal).catch(() => {}); // aborted: the loop's condition sees it
    if (signal.aborted) return;
    try {
      await sweepCalls(options, signal);
      const filled = await room.filled();
      if (filled >= HIGH_MARK && !isReported) onFault(shortageText(filled));
      isReported = filled >= HIGH_MARK;
    } catch (error) {
      if (!signal.aborted) onFault(`the room of calls could not be looked at: ${messageFromUnknown(error)}`);
    }
  }
}

function shortageText(filled: number): string {
  const percent = Math.round(filled * 100);
  return `toolbus_calls is filled to ${percent} % with calls that are open or ended within the hour: when it is full, calls are refused`;
}

function hasEnded({ state }: CallRecord): boolean {
  return state === State.RESOLVED || state === State.EXPIRED || state === State.CANCELED;
}
