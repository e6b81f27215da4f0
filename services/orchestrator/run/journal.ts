/**
 * Reads and writes one run's log. Every writer goes through here: who accepts, works, answers, cancels.
 *
 * J1  Each append follows the state that it was decided on: it names the position of the last event that was folded.
 * J2  An append that was refused because somebody else wrote is no failure: read, fold, decide again. What was decided
 *     on the former state is forgotten.
 * J3  Appends of one journal go one after the other, so that a process never competes with itself.
 * J4  News for a session are announced before they are written, in each attempt: a crash between the two loses nothing, as
 *     the wake-up waits for its news. An append that took so long that nobody waited any more is announced again.
 * J5  What an append lost to is found in the log: a log that shows nothing after a refusal has been removed (`data_loss`).
 * J6  Under a claim, nothing is appended once a newer epoch, a cancellation or the end stands in the log (`Superseded`).
 *     The fence makes this hold for a process that was frozen: its next append is refused and J2 shows it why.
 */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type RunEvent, RunEventSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { foldEvent, type RunState } from "./fold.ts";

/** An event and where it stands in the store: what the next append has to follow. */
export interface StoredEvent {
  readonly event: RunEvent;
  readonly position: number;
}

/** Where logs are kept. Reads see every append that was acknowledged. */
export interface RunLog {
  /** Throws `invalid_argument` with reason `MESSAGE_TOO_LARGE` for an event that no log takes, and names the sizes. */
  check(event: RunEvent): void;
  /** The run's events after a position; 0 for all. */
  read(runId: string, afterPosition: number): Promise<StoredEvent[]>;
  /** The run's first event; undefined while there is no log. What it costs does not grow with the log. */
  first(runId: string): Promise<StoredEvent | undefined>;
  /** Its last one, likewise. */
  last(runId: string): Promise<StoredEvent | undefined>;
  /** Stores the event if the run's last one stands at `position` (0: there is none). */
  append(event: RunEvent, position: number): Promise<{ kind: "appended"; position: number } | { kind: "conflict" }>;
}

export type EventBody = NonNullable<MessageInitShape<typeof RunEventSchema>["event"]>;

export interface RunJournal {
  /** The state as it was last read or written here; undefined while there is no log. */
  readonly state: RunState | undefined;
  /** Position of the last event that was folded. */
  readonly position: number;
  /** Reads what others wrote. */
  refresh(): Promise<RunState | undefined>;
  /** Appends what `decide` makes of the state. `decide` may be called often. Gives the event, if there was one to append. */
  append(decide: Decide, options?: AppendOptions): Promise<RunEvent | undefined>;
}

export interface AppendOptions {
  /** The claim under which the event is written; none unless told. */
  readonly epoch?: number;
  /** J4: wakes the session; told how many events the log has with the news. */
  readonly announce?: (eventCount: number) => Promise<void>;
}

/** How long a wake-up waits for the news that it was sent for. */
export const wakeWaitsMs = 30_000;

/** What to append to the state, if anything. */
export type Decide = (state: RunState | undefined) => EventBody | undefined;

export async function openJournal(log: RunLog, runId: string, clock: Clock): Promise<RunJournal> {
  const journal = createJournal(log, runId, clock);
  await journal.refresh();
  return journal;
}

/** A journal that has read nothing yet. */
export function createJournal(log: RunLog, runId: string, clock: Clock): RunJournal {
  let state: RunState | undefined;
  let position = 0;
  let tail: Promise<unknown> = Promise.resolve();

  function inTurn<T>(action: () => Promise<T>): Promise<T> {
    const result = tail.then(action); // J3
    tail = result.catch(() => {}); // its caller hears of it; the next in line starts all the same
    return result;
  }

  function fold(stored: StoredEvent): void {
    state = foldEvent(state, stored.event);
    position = stored.position;
  }

  async function read(): Promise<RunState | undefined> {
    for (const stored of await log.read(runId, position)) fold(stored);
    return state;
  }

  async function append(decide: Decide, { epoch = 0, announce }: AppendOptions) {
    for (;;) {
      const body = decide(state);
      if (body === undefined) return undefined;
      const event = create(RunEventSchema, {
        runId,
        sequence: state?.eventCount ?? 0,
        time: timestampFromMs(clock.now()),
        epoch,
        event: body,
      });
      log.check(event);
      const announcedAtMs = clock.now();
      await announce?.(event.sequence + 1); // J4
      const outcome = await log.append(event, position); // J1
      if (outcome.kind === "appended") {
        fold({ event, position: outcome.position });
        if (clock.now() - announcedAtMs > wakeWaitsMs / 2) await announce?.(event.sequence + 1); // J4
        return event;
      }
      const refusedAt = position;
      await read(); // J2
      if (position === refusedAt) refuse("data_loss", `the log of run ${runId} is gone`, { reason: "LOG_GONE" }); // J5
    }
  }

  return {
    get state() {
      return state;
    },
    get position() {
      return position;
    },
    refresh: () => inTurn(read),
    append: (decide, options = {}) => inTurn(() => append(decide, options)),
  };
}

/** Somebody else decides about the run by now: whoever is told stops, without writing. */
export class Superseded extends Error {
  constructor(why: string) {
    super(why);
    this.name = "Superseded";
  }
}

/** So that an end always fits its log: see `check`. */
const maxErrorCharacters = 4_000;

/** A run under the claim of this process. */
export interface ClaimedRun {
  readonly epoch: number;
  readonly state: RunState;
  /** Reads what others wrote; throws `Superseded`. */
  refresh(): Promise<RunState>;
  /** Like the journal's, under the claim; throws `Superseded`. */
  append(decide: (state: RunState) => EventBody | undefined): Promise<void>;
  /** Ends the run, also one whose cancellation was asked for. */
  end(body: Extract<EventBody, { case: "ended" }>["value"]): Promise<void>;
}

/** Claims the run as it stands in the journal; undefined when it was claimed or changed by another meanwhile. */
export async function claimRun(journal: RunJournal, instance: string): Promise<ClaimedRun | undefined> {
  const seen = journal.state;
  const epoch = (seen?.claim?.epoch ?? 0) + 1;
  const claimed = await journal.append(
    (state) => {
      const isAsSeen = state !== undefined && state.phase.kind !== "ended" && (state.claim?.epoch ?? 0) + 1 === epoch;
      return isAsSeen ? { case: "claimed", value: { epoch, instance } } : undefined;
    },
    { epoch },
  );
  return claimed === undefined ? undefined : claimedRun(journal, epoch);
}

function claimedRun(journal: RunJournal, epoch: number): ClaimedRun {
  function ours(state: RunState | undefined): RunState {
    if (state === undefined) throw new Superseded("the log is gone");
    if (state.claim?.epoch !== epoch) throw new Superseded(`epoch ${state.claim?.epoch} took over from epoch ${epoch}`);
    if (state.phase.kind === "ended") throw new Superseded("the run has ended"); // J6
    return state;
  }

  function going(state: RunState | undefined): RunState {
    const current = ours(state);
    if (current.cancel !== undefined) throw new Superseded("the run is to be cancelled"); // J6
    return current;
  }

  return {
    epoch,
    get state() {
      return ours(journal.state);
    },
    refresh: async () => going(await journal.refresh()),
    append: async (decide) => {
      await journal.append((state) => decide(going(state)), { epoch });
    },
    end: async (body) => {
      const value = { ...body, error: body.error?.slice(0, maxErrorCharacters) ?? "" };
      await journal.append((state) => ({ case: "ended", value: ours(state) && value }), { epoch });
    },
  };
}
