/** A run in which there is something to do. `worker.ts` has the rules (worker-…). */

import { openEnding } from "#runtime/time/ending.ts";
import { type ClaimedRun, claimRun, Superseded } from "../../log/claim.ts";
import type { LoopOutcome } from "../../loop/loop.ts";
import type { ActiveRun } from "../queue.ts";
import type { HeldElsewhere } from "../wakes/held-elsewhere.ts";
import { type Hold, redeliverToFull, type WakeOutcome } from "../wakes/wake-outcome.ts";
import { onParked } from "./wake/on-idle.ts";
import type { WorkerOptions } from "./worker-options.ts";

/** An outcome if another process answers for the session; undefined to look at the session again. */
export async function claimAndRun(
  options: WorkerOptions & { readonly elsewhere: HeldElsewhere },
  active: ActiveRun,
  hold: Hold,
): Promise<WakeOutcome | undefined> {
  const { elsewhere, instance, slots } = options;
  const { journal, state } = active;
  const holder = state.phase.kind === "working" ? state.claim?.instance : undefined;
  if (holder !== undefined && holder !== instance) {
    const wakeOutcome = await elsewhere.ask(holder, state.accepted.sessionId, hold.wake.id);
    if (wakeOutcome !== undefined) return wakeOutcome;
  }
  if (options.handover.aborted) return { kind: "later", delayMs: 0 };
  const { principal } = state.accepted;
  if (state.cancel === undefined && slots.isFullFor(principal)) return redeliverToFull(hold.wake.deliveryCount); // worker-12
  using _ = slots.hold(principal);
  const run = await claimRun(journal, instance); // worker-4
  const outcome = run && (await turn(options, run, active, hold));
  if (outcome === "handed_over") return { kind: "later", delayMs: 0 };
  return outcome === "parked" ? onParked(options, active) : undefined;
}

async function turn(
  options: WorkerOptions,
  run: ClaimedRun,
  active: ActiveRun,
  hold: Hold,
): Promise<LoopOutcome | undefined> {
  const given = new AbortController();
  using ending = openEnding(given.signal, options.abandon);
  hold.notify = () => {
    run.refresh().catch((error: unknown) => {
      if (error instanceof Superseded) given.abort(error); // whatever else it is, the next append meets it too
    });
  };
  if (hold.isNotified) hold.notify(); // they came while the run was claimed
  try {
    return await options.turnLoop(run, active, ending.signal);
  } catch (error) {
    if (error instanceof Superseded || given.signal.aborted) return undefined;
    throw error;
  } finally {
    hold.notify = () => {};
  }
}
