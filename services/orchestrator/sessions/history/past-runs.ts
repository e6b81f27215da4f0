/**
 * Runs of a session, the latest first.
 *
 * past-runs-1  A run that has ended changes no more: what it came to is remembered by the process, with its place in the queue. What is
 *     remembered is bounded in size; what was not asked for the longest is forgotten first. It may be deleted: after a while, the log is
 *     asked whether it is still there.
 * past-runs-2  Logs are read ahead, a few at once, and the more the further back they are asked for: most ask for few.
 */

import { toBinary } from "@bufbuild/protobuf";
import { RunOptionsSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { type RunLog, readState, unlessBroken } from "../../log/journal.ts";
import { weightOfItems } from "../../log/state/draft/draft.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import type { QueueEntry, SessionQueues } from "../queue.ts";

interface Remembered {
  readonly entry: QueueEntry;
  readonly state: FoldedRun;
  readonly characters: number;
  /** When its log was there. */
  seenAtMs: number;
}

const maxRememberedCharacters = 32 * 1_024 * 1_024;
/** What a run takes besides its words. */
const frameCharacters = 2_048;
const atOnce = 8;
const recheckMs = 60_000;

const rememberedByLog = new WeakMap<RunLog, Memory>();

export function pastRunsOf(queues: SessionQueues, log: RunLog) {
  const memory = rememberedByLog.get(log) ?? createMemory(maxRememberedCharacters);
  rememberedByLog.set(log, memory);

  async function before(entry: QueueEntry): Promise<QueueEntry | undefined> {
    return memory.get(Number(entry.queued.previousEntrySequence))?.entry ?? queues.before(entry);
  }

  async function stateAt(entry: QueueEntry): Promise<FoldedRun | undefined> {
    const known = memory.get(entry.position);
    if (known !== undefined && (await isKept(known))) return known.state;
    const state = await readState(log, entry.queued.runId).catch(unlessBroken);
    if (state?.phase.kind === "ended") memory.put(entry, state); // past-runs-1
    return state;
  }

  /** past-runs-1 */
  async function isKept(known: Remembered): Promise<boolean> {
    const nowMs = performance.now();
    if (nowMs - known.seenAtMs < recheckMs) return true;
    if ((await log.first(known.entry.queued.runId)) === undefined) return memory.forget(known.entry.position);
    known.seenAtMs = nowMs;
    return true;
  }

  return {
    /** Each with its state, undefined when its log is gone or broken, and the entry before it. */
    async *backward(from: QueueEntry | undefined) {
      const ahead: { entry: QueueEntry; state: Promise<FoldedRun | undefined>; before: QueueEntry | undefined }[] = [];
      let next = from;
      for (let width = 1; ; width = Math.min(atOnce, width + 1)) {
        while (next !== undefined && ahead.length < width) {
          const entry: QueueEntry = next;
          const state = stateAt(entry);
          state.catch(() => {}); // the read of this run gets the error
          next = await before(entry);
          ahead.push({ entry, state, before: next });
        }
        const run = ahead.shift();
        if (run === undefined) return;
        yield { ...run, state: await run.state };
      }
    },
    /** The entry of a run, there or further back. */
    async find(runId: string, from: QueueEntry | undefined): Promise<QueueEntry | undefined> {
      let entry = from;
      while (entry !== undefined && entry.queued.runId !== runId) entry = await before(entry);
      return entry;
    },
  };
}

function weightOf({ accepted, inbox, weight, compaction }: FoldedRun): number {
  const options = accepted.options === undefined ? 0 : toBinary(RunOptionsSchema, accepted.options).length;
  return (
    options +
    weightOfItems(inbox?.items ?? []) +
    weight.items +
    weight.checkpoints +
    (compaction?.summary.length ?? 0) +
    frameCharacters
  );
}

type Memory = ReturnType<typeof createMemory>;

export function createMemory(maxCharacters: number) {
  const byPosition = new Map<number, Remembered>();
  let held = 0;

  /** Gives that it holds it no more. */
  function forget(position: number): false {
    held -= byPosition.get(position)?.characters ?? 0;
    byPosition.delete(position);
    return false;
  }

  return {
    forget,
    get(position: number): Remembered | undefined {
      const found = byPosition.get(position);
      if (found === undefined) return undefined;
      byPosition.delete(position);
      byPosition.set(position, found); // the latest stands last
      return found;
    },
    put(entry: QueueEntry, state: FoldedRun): void {
      const characters = weightOf(state);
      if (characters > maxCharacters / 8) return;
      forget(entry.position);
      byPosition.set(entry.position, { entry, state, characters, seenAtMs: performance.now() });
      held += characters;
      for (const position of byPosition.keys()) {
        if (held <= maxCharacters) break;
        forget(position);
      }
    },
  };
}
