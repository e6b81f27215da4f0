/**
 * Changes of runs, as they are stored, for all who follow runs at this process.
 *
 * changes-1  One follower of the store serves all. It begins with the first who comes, and ends some time after the last has left.
 * changes-2  Each event is folded into what a list shows of its run, which is kept while the run goes on. A log is read once at most,
 *     when its run is met in the middle.
 * changes-3  The latest changes are held once for all. Each follower reads them from where it stands and when it can: one that is so
 *     slow that they are dropped is told a gap.
 * changes-4  What cannot be read at present is read again. What stays unreadable is passed over, which everybody is told as a gap: of one log
 *     all other runs do not depend. The feed itself ends with nothing but its followers.
 * changes-5  Who goes on from a little before what is stored last finds that too, also where nobody has followed runs before.
 */

import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { createChanges } from "#runtime/collections/changes.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { repeatUntilAborted, retryWhile } from "#runtime/time/retry/retry.ts";
import { startTimer } from "#runtime/time/timer.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { type RunLog, unlessBroken } from "../../log/journal.ts";
import { type FoldedRun, foldEvent, foldLog } from "../../log/state/fold.ts";
import { listedFrom } from "../../log/state/listed.ts";
import type { StoredEvent } from "../../log/state/log-record.ts";
import { type Bounds, createRecentChanges, type RecentChanges, type RunChange } from "./recent-changes.ts";

/** The logs of all runs, in the order in which they are stored. */
export interface AllRuns {
  /** The position that the store gives next. */
  next(signal: AbortSignal): Promise<number>;
  /** What is stored from a position on. Ends quietly when the signal aborts. */
  follow(fromPosition: number, signal: AbortSignal): AsyncIterable<StoredEvent>;
  /** Runs that clients delete. */
  onDeleted(tell: (deleted: DeletedRun) => void): Disposable;
}

export interface DeletedRun {
  readonly runId: string;
  /** Whose it was. */
  readonly principal: string;
}

export interface ChangesOptions {
  readonly log: Pick<RunLog, "read">;
  readonly allRuns: AllRuns;
  readonly bounds?: Bounds;
  readonly lingerMs?: number;
  /** Told what is read again, and what is passed over (changes-4). */
  readonly onTrouble?: (what: string, error: unknown) => void;
}

interface Following extends Disposable {
  /** The position that the store gave next when the following began. */
  readonly next: number;
  readonly recent: Omit<RecentChanges, "add">;
  /** Resolves when there is more; rejects when the signal aborts. */
  more(signal: AbortSignal): Promise<void>;
}

export interface RunChanges extends Disposable {
  /** Joins those who follow; `from` is where this one goes on, absent for now. */
  join(from: number | undefined, signal: AbortSignal): Promise<Following>;
}

const mostHeld: Bounds = { changes: 10_000, characters: 16 * 2 ** 20 };
/** changes-5 */
const mostBehind = 1_000;
/** Of so many runs that go on it is kept how they stand; the log of one that was dropped is read again. */
const mostKnown = 20_000;

/** changes-4 */
const mostReads = 5;
const waits = { initialMs: 50, maxMs: 1_000 };

export function createRunChanges(options: ChangesOptions): RunChanges {
  const { log, allRuns, bounds = mostHeld, lingerMs = 30_000, onTrouble = () => {} } = options;
  let feed: Feed | undefined;
  let joined = 0;
  let stopLingering = () => {};

  function leave(): void {
    joined -= 1;
    if (joined === 0) stopLingering = startTimer(lingerMs, close, { isBackground: true });
  }

  function close(): void {
    stopLingering();
    feed?.close();
    feed = undefined;
  }

  return {
    async join(from, signal) {
      const next = await allRuns.next(signal);
      stopLingering();
      const start = from !== undefined && from <= next && next - from <= mostBehind ? Math.max(from, 1) : next;
      feed ??= openFeed({ log, allRuns, bounds, onTrouble, start }); // changes-1
      const { recent, more } = feed;
      joined += 1;
      return { next, recent, more, [Symbol.dispose]: leave };
    },
    [Symbol.dispose]: close,
  };
}

type Feed = ReturnType<typeof openFeed>;
type FeedOptions = Required<Omit<ChangesOptions, "lingerMs">> & { readonly start: number };

function openFeed({ log, allRuns, bounds, onTrouble, start }: FeedOptions) {
  const recent = createRecentChanges(start, bounds);
  const read = createReader(log);
  const closing = new AbortController();
  const news = createChanges();

  function add(change: RunChange): void {
    recent.add(change);
    news.tell();
  }

  /** changes-4 */
  async function take(stored: StoredEvent): Promise<void> {
    const onRetry = (error: unknown, attempt: number) => {
      if (attempt === 1)
        onTrouble(`the log of run ${stored.event.runId} is read again for those who watch runs`, error);
    };
    try {
      const again = { ...waits, attempts: mostReads, signal: closing.signal, onRetry };
      const change = await retryWhile(
        () => true,
        () => read.change(stored),
        again,
      );
      if (change !== undefined) add(change);
    } catch (error) {
      if (closing.signal.aborted) return;
      onTrouble(`those who watch runs are told of a gap: the log of run ${stored.event.runId} cannot be read`, error);
      recent.passOver(stored.position);
      news.tell();
    }
  }

  let position = start - 1;
  async function follow(works: () => void): Promise<void> {
    for await (const stored of allRuns.follow(position + 1, closing.signal)) {
      position = stored.position;
      await take(stored);
      works();
    }
  }
  const deletions = allRuns.onDeleted((deleted) => add({ ...deleted, ...nothing, sequence: position }));
  const onError = (error: unknown) => onTrouble("the logs of all runs are followed again", error);
  void callPatience.exit(() => repeatUntilAborted(follow, { ...waits, signal: closing.signal, onError })); // all share it

  return {
    recent,
    async more(signal: AbortSignal) {
      using change = news.next();
      await unlessAborted(change.happened, signal);
    },
    close() {
      deletions[Symbol.dispose]();
      closing.abort();
    },
  };
}

const nothing = { before: "unknown", after: undefined } as const;

interface Known {
  readonly state: FoldedRun;
  readonly position: number;
}

/** changes-2 */
function createReader(log: Pick<RunLog, "read">) {
  const knownByRunId = new BoundedMap<string, Known>(mostKnown);

  function keep(runId: string, known: Known): void {
    if (known.state.phase.kind === "ended") knownByRunId.delete(runId);
    else knownByRunId.set(runId, known);
  }

  async function stateAfter(stored: StoredEvent, before: Known | undefined): Promise<Known | undefined> {
    if (before !== undefined || stored.event.sequence === 0)
      return { state: foldEvent(before?.state, stored), position: stored.position };
    const { records, position } = await log.read(stored.event.runId, 0);
    const state = foldLog(records);
    return state && { state, position };
  }

  return {
    /** Undefined for what no list shows, and for what cannot be read: who asks for such a run is told why. */
    async change(stored: StoredEvent): Promise<RunChange | undefined> {
      const { event, position: sequence } = stored;
      const { runId } = event;
      const before = knownByRunId.get(runId);
      if (before !== undefined && sequence <= before.position) return undefined; // read with what stood before it
      const after = await stateAfter(stored, before).catch(unlessBroken);
      if (after === undefined) {
        knownByRunId.delete(runId);
        return undefined;
      }
      const state = listedFrom(after.state);
      keep(runId, { state, position: after.position });
      if (before !== undefined && !isShown(event)) return undefined;
      const stood = before?.state ?? (event.sequence === 0 ? "none" : "unknown");
      return { sequence, runId, principal: state.accepted.principal, before: stood, after: state };
    },
  };
}

const shown: ReadonlySet<RunEvent["event"]["case"]> = new Set([
  ...(["accepted", "claimed", "turnCommitted", "callFinished", "parked", "ended"] as const),
  ...(["answerDropped", "contextCompacted"] as const),
]);

function isShown({ event }: RunEvent): boolean {
  return shown.has(event.case);
}
