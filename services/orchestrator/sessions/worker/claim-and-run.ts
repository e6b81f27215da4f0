/** A run in which there is something to do. `worker.ts` has the rules (worker-…). */

import { openEnding } from "#runtime/time/ending.ts";
import { claimRun, Superseded } from "../../log/claim.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import type { LoopOutcome } from "../../loop/loop.ts";
import type { ActiveRun } from "../queue.ts";
import type { HeldElsewhere } from "../wakes/held-elsewhere.ts";
import type { Hold, WakeOutcome } from "../wakes/wake-outcome.ts";
import { onParked } from "./wake/on-idle.ts";
import type { WorkerOptions } from "./worker-options.ts";

/** Too many runs wait for their principal's turn. */
export interface Full {
  readonly kind: "full";
  readonly principal: string;
}

/** An outcome if another process answers for the session; undefined to look at the session again. */
export async function claimAndRun(
  options: WorkerOptions & { readonly elsewhere: HeldElsewhere },
  active: ActiveRun,
  hold: Hold,
): Promise<WakeOutcome | Full | undefined> {
  const { elsewhere, instance } = options;
  const { state } = active;
  const holder = state.phase.kind === "working" ? state.claim?.instance : undefined;
  if (holder !== undefined && holder !== instance) {
    const wakeOutcome = await elsewhere.ask(holder, state.accepted.sessionId, hold.wake.id);
    if (wakeOutcome !== undefined) return wakeOutcome;
  }
  if (options.handover.aborted) return { kind: "later", delayMs: 0 };
  const begun = await beginInTurn(options, active, hold);
  if (!("place" in begun)) return begun.outcome;
  using _ = begun.place;
  const outcome = await claimAndTurn(options, active, hold);
  if (outcome === "handed_over") return { kind: "later", delayMs: 0 };
  return outcome === "parked" ? onParked(options, active) : undefined;
}

/** worker-12. A run that is canceled or ends while it waits is looked at again. */
async function beginInTurn(
  { slots, handover }: WorkerOptions,
  { journal, state }: ActiveRun,
  hold: Hold,
): Promise<{ place: Disposable } | { outcome: WakeOutcome | Full | undefined }> {
  const { principal } = state.accepted;
  const waits = (seen: FoldedRun | undefined) => seen?.phase.kind === "queued" && seen.cancel === undefined;
  const place = waits(state) ? slots.begin(principal) : slots.hold(principal);
  if (place !== undefined) return { place };
  using ending = openEnding(handover);
  hold.notify = () => {
    const look = journal.refresh().then((seen) => waits(seen) || ending.end());
    look.catch(() => {}); // its claim meets the same
  };
  if (hold.isNotified) hold.notify(); // they came meanwhile
  try {
    const inTurn = await slots.beginInTurn(principal, ending.signal);
    return inTurn === undefined ? { outcome: { kind: "full", principal } } : { place: inTurn };
  } catch (error) {
    if (!ending.signal.aborted) throw error;
    return { outcome: handover.aborted ? { kind: "later", delayMs: 0 } : undefined };
  } finally {
    hold.notify = () => {};
  }
}

async function claimAndTurn(options: WorkerOptions, active: ActiveRun, hold: Hold): Promise<LoopOutcome | undefined> {
  const given = new AbortController();
  using ending = openEnding(given.signal, options.abandon);
  const claim = async () => {
    const run = await claimRun(active.journal, options.instance); // worker-4
    hold.notify = () => {
      run?.refresh().catch((error: unknown) => {
        if (error instanceof Superseded) given.abort(error); // whatever else it is, the next append meets it too
      });
    };
    if (hold.isNotified) hold.notify(); // they came while the run was claimed
    return run;
  };
  try {
    return await options.turnLoop(claim, active, ending.signal);
  } catch (error) {
    if (error instanceof Superseded || given.signal.aborted) return undefined;
    throw error;
  } finally {
    hold.notify = () => {};
  }
}
