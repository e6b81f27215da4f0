/**
 * A run in the hands of one process.
 *
 * L1  Under a claim, nothing is appended once a newer epoch, a cancellation or the end stands in the log (`Superseded`).
 *     The fence makes this hold for a process that was frozen: its next append is refused and J2 shows it why.
 * L2  A result may be followed before the log has it: the model is asked, or the next call made, while the log takes it.
 *     Whatever is appended stands behind it, what watchers are told waits for it, and when it cannot be stored nothing
 *     follows: the next claim finds the log without it, and asks the router again.
 */

import type { RunState } from "./fold.ts";
import type { EventBody, RunJournal } from "./journal.ts";

/** Somebody else decides about the run by now: whoever is told stops, without writing. */
export class Superseded extends Error {
  constructor(why: string) {
    super(why);
    this.name = "Superseded";
  }
}

/** So that an end always fits its log: see `check`. */
const maxErrorCharacters = 4_000;

type DecideClaimed = (state: RunState) => EventBody | undefined;

export interface ClaimedRun {
  readonly epoch: number;
  readonly state: RunState;
  /** L2: rejects when what is on its way cannot be stored. */
  readonly arrived: Promise<void>;
  /** Reads what others wrote; throws `Superseded`. */
  refresh(): Promise<RunState>;
  /** Like the journal's, under the claim; throws `Superseded`. */
  append(decide: DecideClaimed): Promise<void>;
  /** L2: the same, but resolves as soon as the state has the event. */
  appendAhead(decide: DecideClaimed): Promise<void>;
  /** L2: acts at once, or when what is on its way is stored; not at all when it is not. */
  afterArrival(act: () => void): void;
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
  let arriving: Promise<void> | undefined; // L2: for good when it is lost
  let lost: { cause: unknown } | undefined;

  function ours(state: RunState | undefined): RunState {
    if (state === undefined) throw new Superseded("the log is gone");
    if (state.claim?.epoch !== epoch) throw new Superseded(`epoch ${state.claim?.epoch} took over from epoch ${epoch}`);
    if (state.phase.kind === "ended") throw new Superseded("the run has ended"); // L1
    return state;
  }

  function going(state: RunState | undefined): RunState {
    const current = ours(state);
    if (current.cancel !== undefined) throw new Superseded("the run is to be cancelled"); // L1
    if (lost !== undefined) throw lost.cause;
    return current;
  }

  function appendAhead(decide: DecideClaimed): Promise<void> {
    const started = Promise.withResolvers<void>();
    const onWay = () => {
      arriving = settled;
      started.resolve();
    };
    const stored = journal.append((state) => decide(going(state)), { epoch, onWay });
    const settled: Promise<void> = stored.then(
      () => {},
      (cause: unknown) => {
        if (arriving === settled) lost = { cause };
        throw cause;
      },
    );
    settled.then(() => {
      if (arriving === settled) arriving = undefined;
      started.resolve(); // there was nothing to append
    }, started.reject);
    return started.promise;
  }

  return {
    epoch,
    get state() {
      return ours(journal.state);
    },
    get arrived() {
      return arriving ?? Promise.resolve();
    },
    refresh: async () => going(await journal.refresh()),
    append: async (decide) => {
      await journal.append((state) => decide(going(state)), { epoch });
    },
    appendAhead,
    afterArrival(act) {
      if (arriving === undefined) act();
      else arriving.then(act, () => {}); // who asks next for the arrival, or appends, hears why
    },
    end: async (body) => {
      const value = { ...body, error: body.error?.slice(0, maxErrorCharacters) ?? "" };
      await journal.append((state) => ({ case: "ended", value: ours(state) && value }), { epoch });
    },
  };
}
