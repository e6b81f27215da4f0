/**
 * Stores, from time to time, the text that watchers have got of an attempt so far (LOOP-10).
 *
 * checkpoint-1  The stream never waits for it: one append is under way at a time, and the next one takes what came meanwhile.
 * checkpoint-2  Nothing is stored once the attempt is over: what is still in line by then is dropped. The turn's commit stands in the
 *     same line (journal-3), and so follows a checkpoint that is under way.
 * checkpoint-3  Only what went out is stored: a draft that is read from the log is never ahead of the deltas.
 */

import { startTimer } from "#runtime/time/timer.ts";
import { type ClaimedRun, Superseded } from "../../log/claim.ts";
import { nextCheckpoint } from "../../log/state/draft/draft.ts";
import type { DeltaWriter } from "./deltas.ts";

export interface CheckpointOptions {
  readonly everyMs: number;
  /** Told when the run turns out to be in other hands, or is to be canceled. */
  readonly onSuperseded: (error: Superseded) => void;
}

/** Disposing says that the attempt is over. */
export function openCheckpoints(
  run: ClaimedRun,
  deltas: Pick<DeltaWriter, "snapshot">,
  { everyMs, onSuperseded }: CheckpointOptions,
): Disposable {
  let isOver = false;
  let stop = startTimer(everyMs, write);

  function write(): void {
    const appended = run.append((state) => {
      const checkpoint = isOver ? undefined : nextCheckpoint(state, deltas.snapshot()); // checkpoint-2, checkpoint-3
      return checkpoint && { case: "textCheckpoint", value: checkpoint };
    });
    appended.catch(report).finally(() => {
      if (!isOver) stop = startTimer(everyMs, write); // checkpoint-1
    });
  }

  function report(error: unknown): void {
    if (error instanceof Superseded && !isOver) onSuperseded(error);
    // any other failure leaves the log as it is: a later checkpoint has what this one lacks, and the commit meets it, too
  }

  return {
    [Symbol.dispose]() {
      isOver = true;
      stop();
    },
  };
}
