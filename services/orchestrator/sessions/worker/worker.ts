/**
 * Works on sessions as they are woken: `on-wake.ts` (news there?), `claim-and-run.ts` (held? claim, loop), `on-idle.ts` (done).
 *
 *   wake ──▶ news there? ─no─▶ later
 *              │ yes
 *              ▼
 *      ┌──▶ the run whose turn it is ─none, or waits for its client─▶ done
 *      │       │
 *      │    held by a process? ─it answers─▶ later (it looks again) · leave (the wake-up is its own)
 *      │       │ no, or silence
 *      │    claim, loop
 *      └───────┘
 *
 * worker-1  While a session has work, a wake-up of it stands in the queue: it is acknowledged when there is nothing left to do.
 *     When the process dies that has it in hand, it comes to another one.
 * worker-2  A process works on a session once at a time. It answers for every wake-up it hears of meanwhile by looking again;
 *     looking, and giving the session up, happen without anything between them. One that comes to it is kept and put down
 *     with the first, one that came to another process is put back there: the first may be gone, as it is acknowledged by
 *     whoever gets it a second time and finds the session at rest.
 * worker-3  A wake-up may be earlier than its news (journal-4): it waits for them, and not for ever. Before they stand, nobody
 *     answers for it: who looks again would not find them.
 * worker-4  Liveness comes from asking the holder, correctness from the fence: a claim on a run that is held after all costs a
 *     repeated step and never a wrong event.
 * worker-5  An error that is nobody's fault (the bus is away) leaves the run as it is. Any other one ends it: a run that fails
 *     the same way in each process must not go round for ever.
 * worker-6  A session at rest looks into its inbox, also when the wake-up was a run's: one of the inbox that came meanwhile was
 *     answered for (worker-2), or found the session parked.
 * worker-7  A wake-up of a session whose run waits for its client is put down once the broker has the time at which that run is to
 *     end: after a death in between, the wake-up comes again.
 * worker-8  A run that has parked under this process's claim is at rest as its journal has it, without another look: whatever was
 *     written since has a wake-up of its own, which was answered for by looking again (worker-2) or is yet to come.
 * worker-9  A run that has a deadline and waits for its turn has its time with the broker before its wake-up is answered for. When it
 *     is due, the run ends in its queue, and the one before it hears nothing of it.
 * worker-10 Whoever answered for a session is asked first, as long as it does: its wake-ups come back every half second, and reading
 *     its runs' logs each time would cost more the longer they are.
 * worker-11 What was open for a run alone is closed before the wake-up is put down with which it was found ended: after a death in
 *      between, the wake-up comes again.
 */

import type { RunJournal } from "../../log/journal.ts";
import { type FoldedRun, isRunnable } from "../../log/state/fold.ts";
import { findActiveRun } from "../queue.ts";
import { createHeldElsewhere } from "../wakes/held-elsewhere.ts";
import type { HolderAnswer, Wake } from "../wakes/wake.ts";
import { type Hold, redeliverSoon, settleWake, type WakeOutcome } from "../wakes/wake-outcome.ts";
import { claimAndRun } from "./claim-and-run.ts";
import { onIdle } from "./on-idle.ts";
import { areEventsStored, findAcceptedHere } from "./on-wake.ts";
import { createReleasedRuns } from "./released-runs.ts";
import type { WorkerOptions } from "./worker-options.ts";

export interface SessionWorker {
  /** Works on what the wake-up is for, and puts it down. Never rejects. */
  work(wake: Wake): Promise<void>;
  /** worker-2: answers for a session, and looks again if it is held here. */
  answer(sessionId: string, wakeId: number | undefined): HolderAnswer;
}

export function createSessionWorker(given: WorkerOptions): SessionWorker {
  const elsewhere = createHeldElsewhere(given.holders);
  const options = { ...given, elsewhere };
  const { log, queues, clock, logger } = options;
  const releaseOnce = createReleasedRuns(given.releaseRun ?? (async () => {}));
  const holdsBySession = new Map<string, Hold>();

  function answer(sessionId: string, wakeId: number | undefined): HolderAnswer {
    const hold = holdsBySession.get(sessionId);
    if (hold === undefined) return "free";
    hold.isNotified = true;
    hold.notify();
    return hold.wakeId === wakeId ? "leave" : "taken";
  }

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
    let known = await findAcceptedHere(options, wake);
    if (known === undefined && !(await areEventsStored(options, wake))) return { kind: "later", delayMs: 50 }; // worker-3
    const answered = holdsBySession.has(sessionId) ? undefined : await elsewhere.askAgain(sessionId, wake.id); // worker-10
    if (answered !== undefined) return answered;
    const held = answer(sessionId, wake.id);
    if (held === "leave") return { kind: "leave" };
    if (held === "taken") {
      holdsBySession.get(sessionId)?.kept.push(wake); // worker-2
      return { kind: "kept" };
    }
    const hold: Hold = { wakeId: wake.id, kept, isNotified: false, notify: () => {} };
    holdsBySession.set(sessionId, hold); // worker-2
    let journal: RunJournal | undefined;
    const releasing: (Promise<void> | undefined)[] = [];
    const onEnded = (state: FoldedRun) => void releasing.push(releaseOnce(state)); // worker-11
    try {
      for (;;) {
        hold.isNotified = false;
        const active = known ?? (await findActiveRun(queues, log, sessionId, clock, journal, onEnded));
        known = undefined;
        journal = active?.journal;
        const hasWork = active !== undefined && isRunnable(active.state, clock.now());
        const wakeOutcome = await (hasWork ? claimAndRun(options, active, hold) : onIdle(options, active, wake));
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
