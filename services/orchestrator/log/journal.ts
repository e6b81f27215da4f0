/**
 * Reads and writes the log of one run. All writers use it: those that accept, work, answer and cancel.
 *
 * journal-1  Each append names the position of the last event that was folded: it follows the state on which it was decided.
 * journal-2  A conflict is no failure: the journal reads, folds and decides again. The decision on the former state is dropped.
 * journal-3  Appends of one journal run one after the other, so that a process does not compete with itself.
 * journal-4  A session is woken before the event is written, in each attempt. So a crash between the two loses nothing: the wake-up waits
 *     for its event. After an append that took longer than wake-ups wait, the session is woken again.
 * journal-5  After a conflict, the log has the event that won. A log without any has been removed (`data_loss`).
 * journal-6  A caller that goes ahead sees a state with an event that is not stored yet. The next append waits for that event (journal-3);
 *     while a conflict makes the journal decide again (journal-2), nobody sees the state without it.
 */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type RunEvent, RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { type FoldedRun, foldEvent, foldLog } from "./state/fold.ts";
import type { LogPart, LogRecord, StoredEvent } from "./state/log-record.ts";

/** Where logs are kept. Reads see every append that was acknowledged. */
export interface RunLog {
  /** Throws `invalid_argument` with reason `MESSAGE_TOO_LARGE` for an event that no log takes, and names the sizes. */
  check(record: LogRecord): void;
  /** What an event of the run takes at most. */
  maxEventBytes(runId: string): number;
  /** The run's events after a position; 0 for all. What nobody can read is passed over. */
  read(runId: string, afterPosition: number): Promise<LogPart>;
  /** The run's first event, or its first after a position; undefined when there is none. What it costs does not grow with the log. */
  first(runId: string, afterPosition?: number): Promise<StoredEvent | undefined>;
  /** Its last one, likewise. */
  last(runId: string): Promise<StoredEvent | undefined>;
  /** Stores the event if the run's last one stands at `position` (0: there is none). */
  append(record: LogRecord, position: number): Promise<{ kind: "appended"; position: number } | { kind: "conflict" }>;
}

export type EventBody = NonNullable<MessageInitShape<typeof RunEventSchema>["event"]>;

export interface RunJournal {
  /** The state as it was last read or written here, journal-6 included; undefined while there is no log. */
  readonly state: FoldedRun | undefined;
  /** Position of the last event that was folded. */
  readonly position: number;
  /** Reads what others wrote. */
  refresh(): Promise<FoldedRun | undefined>;
  /** Appends what `decide` makes of the state. `decide` may be called often. Gives the event, if there was one to append. */
  append(decide: Decide, options?: AppendOptions): Promise<RunEvent | undefined>;
}

interface AppendOptions {
  /** The claim under which the event is written; none by default. */
  readonly epoch?: number;
  /** Of a claim: the process that takes the run. */
  readonly instance?: string;
  /** journal-4: wakes the session; gets the number of events that the log has with this one. */
  readonly announce?: (eventCount: number) => Promise<void>;
  /** journal-6: the event is on its way, and the state has it. May be called again. */
  readonly onWay?: () => void;
}

/** How long a wake-up waits for the event that it was sent for. */
export const wakeWaitsMs = 30_000;

/** What to append to the state, if anything. */
export type Decide = (state: FoldedRun | undefined) => EventBody | undefined;

export async function openJournal(log: RunLog, runId: string, clock: Clock): Promise<RunJournal> {
  const journal = createJournal(log, runId, clock);
  await journal.refresh();
  return journal;
}

/** The run as it stands in its log; undefined while there is none. */
export async function readState(log: Pick<RunLog, "read">, runId: string): Promise<FoldedRun | undefined> {
  return foldLog((await log.read(runId, 0)).records);
}

/** Takes a log that is broken for none: no other run depends on it. What else fails may pass. */
export function unlessBroken(error: unknown): undefined {
  if (!(error instanceof Failure && error.code === "data_loss")) throw error;
}

/**
 * Of a run whose log was read as broken: whether it has ended, or its log is broken event by event too. Of many events that are
 * read at once, one may be lost on the way.
 */
export async function isPastHelp(log: Pick<RunLog, "first" | "last">, runId: string): Promise<boolean> {
  if ((await log.last(runId))?.event.event.case === "ended") return true;
  let state: FoldedRun | undefined;
  try {
    for (let next = await log.first(runId); next !== undefined; next = await log.first(runId, next.position))
      state = foldEvent(state, next);
    return false;
  } catch (error) {
    unlessBroken(error);
    return true;
  }
}

/** A journal that has read nothing yet, or the first event alone. */
export function createJournal(log: RunLog, runId: string, clock: Clock, first?: StoredEvent): RunJournal {
  let state = first && foldEvent(undefined, first);
  let ahead: FoldedRun | undefined; // journal-6
  let position = first?.position ?? 0;
  let tail: Promise<unknown> = Promise.resolve();

  function inTurn<T>(action: () => Promise<T>): Promise<T> {
    const result = tail.then(action); // journal-3
    tail = result.catch(() => {}); // its caller gets the error; the next append starts all the same
    return result;
  }

  async function read(): Promise<FoldedRun | undefined> {
    const part = await log.read(runId, position);
    for (const record of part.records) state = foldEvent(state, record);
    position = part.position;
    return state;
  }

  async function append(decide: Decide, { epoch = 0, instance = "", announce, onWay }: AppendOptions) {
    for (;;) {
      const body = decide(state);
      if (body === undefined) return undefined;
      const event = create(RunEventSchema, {
        runId,
        sequence: state?.eventCount ?? 0,
        createTime: timestampFromMs(clock.now()),
        event: body,
      });
      const record = { event, epoch, instance };
      log.check(record);
      const announcedAtMs = clock.now();
      await announce?.(event.sequence + 1); // journal-4
      if (onWay) ahead = foldEvent(state, record); // journal-6
      onWay?.();
      const outcome = await log.append(record, position); // journal-1
      if (outcome.kind === "appended") {
        state = ahead ?? foldEvent(state, record);
        position = outcome.position;
        if (clock.now() - announcedAtMs > wakeWaitsMs / 2) await announce?.(event.sequence + 1); // journal-4
        return event;
      }
      const refusedAt = position;
      await read(); // journal-2
      if (position === refusedAt) refuse("data_loss", `the log of run ${runId} is gone`, { reason: "RECORD_LOST" }); // journal-5
    }
  }

  return {
    get state() {
      return ahead ?? state;
    },
    get position() {
      return position;
    },
    refresh: () => inTurn(read),
    append: (decide, options = {}) =>
      inTurn(() =>
        append(decide, options).finally(() => {
          ahead = undefined;
        }),
      ),
  };
}
