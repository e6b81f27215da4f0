/**
 * Runs that this process has accepted a moment ago, for the worker whose wake-up comes to the same process: it waits for the
 * creator in place of looking for what the creator writes, and goes on from what the creator knows.
 *
 * G1  Only what is stored is handed on: a log of one event, and the first entry of its session's queue, before which there is
 *     nothing to look at. Whatever happens to the run meanwhile, the fence of the next append tells.
 * G2  It is handed on once. A wake-up that comes to another process finds all of it in the log; what nobody asks for here is
 *     forgotten after the next hundreds.
 */

import type { RunJournal } from "../../log/journal.ts";
import type { QueueEntry } from "../queue.ts";

export interface Beginning {
  readonly journal: RunJournal;
  readonly entry: QueueEntry;
}

export interface Beginnings {
  /** To be called before the run's wake-up is sent. Disposing says that nothing is handed on, if nothing was. */
  open(runId: string): Disposable & { hand(beginning: Beginning): void };
  /** The beginning of a run once its creator is done; undefined if there is none to be had here. */
  take(runId: string): Promise<Beginning | undefined>;
}

/** G2. */
const mostKept = 500;

export function createBeginnings(): Beginnings {
  const kept = new Map<string, Promise<Beginning | undefined>>();
  return {
    open(runId) {
      const { promise, resolve } = Promise.withResolvers<Beginning | undefined>();
      kept.set(runId, promise);
      const [oldest] = kept.keys();
      if (kept.size > mostKept && oldest !== undefined) kept.delete(oldest);
      return { hand: resolve, [Symbol.dispose]: () => resolve(undefined) };
    },
    async take(runId) {
      const beginning = kept.get(runId);
      kept.delete(runId);
      return beginning;
    },
  };
}
