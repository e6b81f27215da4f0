/**
 * Works on sessions as they are woken: `on-wake.ts` (are the events stored?), `claim-and-run.ts` (held? claim, loop), `on-idle.ts` (done).
 *
 *   wake ──▶ events stored? ─no─▶ later
 *              │ yes
 *              ▼
 *      ┌──▶ the active run ─none, or it waits for its client─▶ done
 *      │       │
 *      │    held by a process? ─it answers─▶ later (the holder was notified) · leave (the wake-up is the holder's)
 *      │       │ no, or silence
 *      │    claim, loop
 *      └───────┘
 *
 * worker-1   While a session has work, a wake-up of it is in the queue. It is acknowledged when nothing is left to do. If the process
 *     that works on it dies, the wake-up goes to another one.
 * worker-2   A process works on a session once at a time. For each further wake-up, it looks at the session again. It checks for such
 *     wake-ups and gives the session up in one step, with no await in between. A wake-up that came to this process is settled
 *     with the first one; a wake-up that came to another process is put back there, because the first one may be
 *     acknowledged by a process that gets it a second time and finds the session idle.
 * worker-3   A wake-up may come before its events (journal-4): it waits for them, but not for ever. Until they are stored, no process
 *     answers for it, because looking at the session again would not find them.
 * worker-4   Asking the holder decides about liveness, the fence decides about correctness: a claim on a run that is held after all
 *     costs a repeated step and never a wrong event.
 * worker-5   A transient error (the bus is unavailable) leaves the run as it is. Any other error ends it: a run that fails in the same way
 *     in every process must not go round for ever.
 * worker-6   An idle session reads its inbox, also after the wake-up of a run: the inbox's own wake-up may have come meanwhile
 *     (worker-2), or found the session parked. So each wake-up stands for what waits in the inbox: as long as the inbox cannot
 *     be read, or nobody may start a run here any more, it is put back.
 * worker-7   When a run waits for its client, the wake-up is settled only after the broker has the run's deadline: if the process dies
 *     in between, the wake-up comes again.
 * worker-8   A run that parked under this process's claim is as its journal says, and is not read again: whatever was written
 *     since has a wake-up of its own.
 * worker-9   A queued run with a deadline has its time with the broker before its wake-up is settled. When the time comes, the run ends
 *     in its queue, and the run before it is not disturbed.
 * worker-10  The process that answered for a session last is asked first: wake-ups come back every half second, and reading the logs of
 *     the session's runs each time would cost more the longer they are.
 * worker-11  What was open for an ended run alone is closed before the wake-up is settled: if the process dies in between, the wake-up
 *     comes again.
 * worker-12  Where few slots are left, a run of a principal that has its part of them does not begin: it waits in its turn
 *     (`../wakes/slots.ts`), or is put back where too many wait, and is not read again for nothing when it comes. Runs that have begun,
 *     and canceled ones, go on at once.
 */

import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import type { RunJournal } from "../../log/journal.ts";
import { type FoldedRun, isRunnable } from "../../log/state/fold.ts";
import { findActiveRun } from "../queue.ts";
import { createHeldElsewhere } from "../wakes/held-elsewhere.ts";
import { createWaitingForSlots } from "../wakes/waiting-for-slots.ts";
import { againMs, type HolderAnswer, type Wake } from "../wakes/wake.ts";
import { type Hold, redeliverSoon, settleWake, type WakeOutcome } from "../wakes/wake-outcome.ts";
import { claimAndRun } from "./claim-and-run.ts";
import { createReleasedRuns } from "./released-runs.ts";
import { endBroken } from "./wake/broken-runs.ts";
import { createInboxLook } from "./wake/inbox-look.ts";
import { onIdle } from "./wake/on-idle.ts";
import { onWake } from "./wake/on-wake.ts";
import type { WorkerOptions } from "./worker-options.ts";

export function createSessionWorker(given: WorkerOptions) {
  const elsewhere = createHeldElsewhere(given.holders);
  const options = { ...given, elsewhere, lookIntoInbox: createInboxLook(given) };
  const { clock, logger } = options;
  const releaseOnce = createReleasedRuns(given.releaseRun ?? (async () => {}));
  const waitingForSlots = createWaitingForSlots(given.slots);
  const holdsBySession = new Map<string, Hold>();
  /** Where entries of runs stand that were claimed and have ended (queue-2). One that is forgotten is read again. */
  const over = new BoundedMap<number, true>(20_000);

  /** worker-2: answers for a session, and looks again if it is held here. */
  function answer(sessionId: string, wakeId: number | undefined): HolderAnswer {
    const hold = holdsBySession.get(sessionId);
    if (hold === undefined) return "free";
    hold.isNotified = true;
    hold.fresh = undefined; // it may have changed
    hold.notify();
    return hold.wake.id === wakeId ? "leave" : "taken";
  }

  /** Works on what the wake-up is for, and puts it down. Never rejects. */
  async function work(wake: Wake): Promise<void> {
    const { sessionId, runId } = wake.message;
    const kept: Wake[] = [];
    const wakeOutcome = await decide(wake, kept).catch((error: unknown): WakeOutcome => {
      if (!options.abandon.aborted) logger.warn({ err: error, sessionId, runId }, "a wake-up is put back");
      return { kind: "later", delayMs: options.abandon.aborted ? 0 : 500 };
    });
    settleWake(wake, wakeOutcome);
    for (const other of kept) settleWake(other, wakeOutcome.kind === "leave" ? redeliverSoon : wakeOutcome);
  }

  async function decide(wake: Wake, kept: Wake[]): Promise<WakeOutcome> {
    const { sessionId } = wake.message;
    const waiting = waitingForSlots.find(wake);
    if (waiting !== undefined) return waiting; // worker-12
    const fresh = await onWake(options, wake);
    if (fresh === "early") return { kind: "later", delayMs: againMs }; // worker-3
    const answered = holdsBySession.has(sessionId) ? undefined : await elsewhere.askAgain(sessionId, wake.id); // worker-10
    if (answered !== undefined) return answered;
    const held = answer(sessionId, wake.id);
    if (held === "leave") return { kind: "leave" };
    if (held === "taken") {
      const hold = holdsBySession.get(sessionId)!;
      hold.kept.push(wake); // worker-2
      hold.fresh = fresh;
      return { kind: "kept" };
    }
    const hold: Hold = { wake, kept, fresh, isNotified: false, notify: () => {} };
    holdsBySession.set(sessionId, hold); // worker-2
    let journal: RunJournal | undefined;
    const releasing: (Promise<void> | undefined)[] = [];
    const found = {
      over,
      onEnded: (state: FoldedRun) => void releasing.push(releaseOnce(state)), // worker-11
      onBroken: (id: string) => void releasing.push(endBroken(options, id)), // queue-3
    };
    try {
      for (;;) {
        hold.isNotified = false;
        const from = hold.fresh;
        hold.fresh = undefined;
        const active = await findActiveRun(options, sessionId, { ...found, from, journal });
        if (active === undefined && from !== undefined) continue; // another one may stand behind it
        journal = active?.journal;
        const hasWork = active !== undefined && isRunnable(active.state, clock.now());
        const wakeOutcome = await (hasWork ? claimAndRun(options, active, hold) : onIdle(options, active, sessionId));
        if (wakeOutcome?.kind === "full") return waitingForSlots.putBack(wake, wakeOutcome.principal);
        if (wakeOutcome === undefined || (wakeOutcome.kind === "done" && hold.isNotified)) continue;
        if (releasing.length > 0) await Promise.all(releasing.splice(0));
        if (wakeOutcome.kind === "done" && hold.isNotified) continue; // they came meanwhile
        return wakeOutcome; // worker-1, worker-2: the session is given up in the same breath
      }
    } finally {
      holdsBySession.delete(sessionId);
    }
  }

  return { work, answer };
}
