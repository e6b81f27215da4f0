/**
 * A run that one process has claimed.
 *
 * claim-1  Under a claim, nothing is appended after a newer epoch, a cancellation or the end (`Superseded`). The fence makes this hold for a
 *     process that was frozen: its next append conflicts, and journal-2 shows why. There is one exception beside the end: what a
 *     model used counts also after a cancellation.
 * claim-2  The loop may go on before a result is stored: the model is asked, or the next call made, meanwhile. Later appends and
 *     what watchers see wait for the result. If it cannot be stored, nothing follows it: the next claim finds the log without
 *     it, and asks the router again.
 * claim-3  The end of a run in the middle of a turn is preceded by the text that watchers saw, also after a cancellation. Text that does not
 *     fit the log is left out.
 */

import type { RunTextReplaced } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { Decide, EventBody, RunJournal } from "./journal.ts";
import { lastCheckpoint } from "./state/draft/draft.ts";
import type { FoldedRun } from "./state/fold.ts";
import { isTooLarge } from "./too-large.ts";

/** Another process, a cancellation or the end decides about the run: this process stops without writing. */
export class Superseded extends Error {
  override readonly name = "Superseded";
}

/** Another process goes on with the run, and with its calls. */
export class TakenOver extends Superseded {}

/** So that an end always fits its log: see `check`. */
const maxErrorCharacters = 4_000;

type RunEnd = Extract<EventBody, { case: "ended" }>["value"];
type DecideClaimed = (state: FoldedRun) => EventBody | undefined;

export interface ClaimedRun {
  readonly epoch: number;
  readonly state: FoldedRun;
  /** claim-2: resolves when all pending writes are stored, rejects when one cannot be. */
  readonly pending: Promise<void>;
  /** Reads what others wrote; throws `Superseded`, also for a cancellation that was not there when the run was claimed. */
  refresh(): Promise<FoldedRun>;
  /** Like the journal's, under the claim; throws `Superseded`. */
  append(decide: DecideClaimed): Promise<void>;
  /** claim-2: the same, but resolves as soon as the state has the event. */
  appendAhead(decide: DecideClaimed): Promise<void>;
  /** claim-2: acts once all pending writes are stored; never when one cannot be. */
  afterStored(act: () => void): void;
  /** Stores what a model has used, also for a run whose cancellation was asked for (claim-1); throws `Superseded`. */
  spend(body: Extract<EventBody, { case: "answerDropped" }>): Promise<void>;
  /** Ends the run, also one whose cancellation was asked for; with the text that watchers saw of its turn (claim-3). */
  end(decide: (state: FoldedRun) => RunEnd, lastText?: RunTextReplaced): Promise<void>;
}

/** Claims the run as it stands in the journal; undefined when it has ended, or was claimed or changed by another meanwhile. */
export async function claimRun(journal: RunJournal, instance: string): Promise<ClaimedRun | undefined> {
  const seen = journal.state;
  if (seen === undefined || seen.phase.kind === "ended") return undefined;
  const epoch = (seen.claim?.epoch ?? 0) + 1;
  const decide: Decide = (state) => (state === seen ? { case: "claimed", value: {} } : undefined);
  const claimed = await journal.append(decide, { epoch, instance });
  return claimed === undefined ? undefined : claimedRun(journal, epoch);
}

function claimedRun(journal: RunJournal, epoch: number): ClaimedRun {
  const writes = openPendingWrites();
  const isToCancel = journal.state?.cancel !== undefined;
  const ours = (state: FoldedRun | undefined) => stateUnder(epoch, state);

  function going(state: FoldedRun | undefined): FoldedRun {
    const current = ours(state);
    if (current.cancel !== undefined) throw new Superseded("the run is to be canceled"); // claim-1
    writes.throwIfLost();
    return current;
  }

  const append = async (decide: (state: FoldedRun | undefined) => EventBody | undefined) => {
    await journal.append(decide, { epoch });
  };

  /** claim-3 */
  async function storeText(lastText: RunTextReplaced): Promise<void> {
    try {
      await append((state) => {
        const { turns, draft } = ours(state);
        const value = lastText.turn > turns.length ? lastCheckpoint(draft, lastText) : undefined;
        return value && { case: "textCheckpoint", value };
      });
    } catch (error) {
      if (!isTooLarge(error)) throw error;
    }
  }

  return {
    epoch,
    get state() {
      return ours(journal.state);
    },
    get pending() {
      return writes.last ?? Promise.resolve();
    },
    refresh: async () => (isToCancel ? ours : going)(await journal.refresh()),
    append: (decide) => append((state) => decide(going(state))),
    appendAhead: (decide) => writes.begin((onWay) => journal.append((state) => decide(going(state)), { epoch, onWay })),
    afterStored(act) {
      if (writes.last === undefined) act();
      else writes.last.then(act, () => {}); // the next append, or whoever awaits `pending`, gets the error
    },
    spend: (body) => append((state) => ours(state) && body),
    end: async (decide, lastText) => {
      if (lastText !== undefined) await storeText(lastText);
      await append((state) => {
        const value = decide(ours(state));
        return { case: "ended", value: { ...value, error: value.error?.slice(0, maxErrorCharacters) ?? "" } };
      });
    },
  };
}

/** The state if the run is still worked on under this claim. */
function stateUnder(epoch: number, state: FoldedRun | undefined): FoldedRun {
  if (state === undefined) throw new Superseded("the log is gone");
  if (state.claim?.epoch !== epoch) throw new TakenOver(`epoch ${state.claim?.epoch} took over from epoch ${epoch}`);
  if (state.phase.kind === "ended") throw new Superseded("the run has ended"); // claim-1
  return state;
}

/** claim-2: writes on their way to the log. The last one stands behind all others, and so answers for them. */
function openPendingWrites() {
  let last: Promise<void> | undefined; // for good when it is lost
  let lost: { cause: unknown } | undefined;

  return {
    get last() {
      return last;
    },
    throwIfLost(): void {
      if (lost !== undefined) throw lost.cause;
    },
    /** Resolves when the event is on its way, or when there was nothing to append. */
    begin(store: (onWay: () => void) => Promise<unknown>): Promise<void> {
      const started = Promise.withResolvers<void>();
      const onWay = () => {
        last = settled;
        started.resolve();
      };
      const settled: Promise<void> = store(onWay).then(
        () => {},
        (cause: unknown) => {
          if (last === settled) lost = { cause };
          throw cause;
        },
      );
      settled.then(() => {
        if (last === settled) last = undefined;
        started.resolve();
      }, started.reject);
      return started.promise;
    },
  };
}
