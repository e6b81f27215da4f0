/**
 * Works on sessions as they are woken.
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
 * W1  While a session has work, a wake-up of it stands in the queue: it is acknowledged when there is nothing left to do.
 *     When the process dies that has it in hand, it comes to another one.
 * W2  A process works on a session once at a time. It answers for every wake-up it hears of meanwhile by looking again;
 *     looking, and giving the session up, happen without anything between them. One that comes to it is kept and put down
 *     with the first, one that came to another process is put back there: the first may be gone, as it is acknowledged by
 *     whoever gets it a second time and finds the session at rest.
 * W3  A wake-up may be earlier than its news (journal J4): it waits for them, and not for ever. Before they stand, nobody
 *     answers for it: who looks again would not find them.
 * W4  Liveness comes from asking the holder, correctness from the fence: a claim on a run that is held after all costs a
 *     repeated step and never a wrong event.
 * W5  An error that is nobody's fault (the bus is away) leaves the run as it is. Any other one ends it: a run that fails
 *     the same way in each process must not go round for ever.
 * W6  A session at rest looks into its inbox, also when the wake-up was a run's: one of the inbox that came meanwhile was
 *     answered for (W2), or found the session parked.
 * W7  A wake-up of a session whose run waits for its client is put down once the broker has the time at which that run is to
 *     end: after a death in between, the wake-up comes again.
 * W8  A run that has parked under this process's claim is at rest as its journal has it, without another look: whatever was
 *     written since has a wake-up of its own, which was answered for by looking again (W2) or is yet to come.
 */

import { RunStatus } from "#gen/toolbus/run/v1/run_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { LoopOutcome } from "../loop/loop.ts";
import { type ClaimedRun, claimRun, Superseded } from "../run/claim.ts";
import { isRunnable } from "../run/fold.ts";
import { type RunJournal, wakeWaitsMs } from "../run/journal.ts";
import { isPassing } from "./passing.ts";
import { type ActiveRun, enqueue, findActiveRun } from "./queue.ts";
import type { HolderAnswer, Wake } from "./wake.ts";
import type { WorkerOptions } from "./worker-options.ts";

type Verdict = { kind: "done" } | { kind: "leave" } | { kind: "kept" } | { kind: "later"; delayMs: number };

interface Hold {
  readonly wakeId: number;
  /** W2: further wake-ups of the session, put down with the first. */
  readonly kept: Wake[];
  hasNews: boolean;
  /** Makes the run that is under way look at its log. */
  nudge: () => void;
}

export interface SessionWorker {
  /** Works on what the wake-up is for, and puts it down. Never rejects. */
  work(wake: Wake): Promise<void>;
  /** W2: answers for a session, and looks again if it is held here. */
  answer(sessionId: string, wakeId: number | undefined): HolderAnswer;
}

export function createSessionWorker(options: WorkerOptions): SessionWorker {
  const { log, queues, holders, instance, clock, logger } = options;
  const holdsBySession = new Map<string, Hold>();

  function answer(sessionId: string, wakeId: number | undefined): HolderAnswer {
    const hold = holdsBySession.get(sessionId);
    if (hold === undefined) return "free";
    hold.hasNews = true;
    hold.nudge();
    return hold.wakeId === wakeId ? "leave" : "taken";
  }

  async function work(wake: Wake): Promise<void> {
    const { sessionId, runId } = wake.message;
    const kept: Wake[] = [];
    const verdict = await decide(wake, kept).catch((error: unknown): Verdict => {
      if (!options.abandon.aborted) logger.warn({ err: error, sessionId, runId }, "a wake-up is put back");
      return { kind: "later", delayMs: options.abandon.aborted ? 0 : 500 };
    });
    putDown(wake, verdict);
    for (const other of kept) putDown(other, verdict.kind === "leave" ? putBack : verdict);
  }

  async function decide(wake: Wake, kept: Wake[]): Promise<Verdict> {
    const { sessionId } = wake.message;
    let known = await beginningOf(wake);
    if (known === undefined && !(await hasNews(wake))) return { kind: "later", delayMs: 50 }; // W3
    const held = answer(sessionId, wake.id);
    if (held === "leave") return { kind: "leave" };
    if (held === "taken") {
      holdsBySession.get(sessionId)?.kept.push(wake); // W2
      return { kind: "kept" };
    }
    const hold: Hold = { wakeId: wake.id, kept, hasNews: false, nudge: () => {} };
    holdsBySession.set(sessionId, hold); // W2
    let journal: RunJournal | undefined;
    try {
      for (;;) {
        hold.hasNews = false;
        const active = known ?? (await findActiveRun(queues, log, sessionId, clock, journal));
        known = undefined;
        journal = active?.journal;
        const hasWork = active !== undefined && isRunnable(active.state, clock.now());
        const verdict = await (hasWork ? takeUp(active, hold) : rest(active, wake));
        if (verdict === undefined || (verdict.kind === "done" && hold.hasNews)) continue;
        return verdict; // W1, W2: the session is given up in the same breath
      }
    } finally {
      holdsBySession.delete(sessionId);
    }
  }

  /** Of a run that was accepted here, and of whose acceptance the wake-up tells: further news are waited for (W3). */
  async function beginningOf({ message }: Wake): Promise<ActiveRun | undefined> {
    const { runId, eventCount } = message;
    const beginning = eventCount === 1 ? await options.beginnings?.take(runId) : undefined;
    const state = beginning?.journal.state;
    return state && beginning && { ...beginning, state };
  }

  /** W3. An accepted run that its creator did not live to enqueue is enqueued here. */
  async function hasNews({ message, ageMs }: Wake): Promise<boolean> {
    const { runId, sessionId, eventCount } = message;
    if (runId === "") return true; // news of the inbox stand there before the wake-up
    const last = await log.last(runId);
    if (last === undefined || last.event.sequence + 1 < eventCount) return ageMs > wakeWaitsMs;
    const first = last.event.sequence === 0 ? last : await log.first(runId);
    if (first !== undefined) await enqueue(queues, { sessionId, runId, acceptedPosition: first.position });
    return true;
  }

  /** W6. */
  async function rest(active: ActiveRun | undefined, { message }: Wake): Promise<Verdict | undefined> {
    if (active !== undefined) {
      await setDeadline(active); // W7
      return { kind: "done" };
    }
    const isOfInbox = message.runId === "";
    if (options.handover.aborted) return isOfInbox ? { kind: "later", delayMs: 0 } : { kind: "done" };
    try {
      return (await options.startFromInbox(message.sessionId, options.abandon)) ? undefined : { kind: "done" };
    } catch (error) {
      if (error instanceof Failure && error.code === "not_found") return { kind: "done" }; // a session that is gone
      if (isOfInbox) throw error;
      logger.warn({ err: error, sessionId: message.sessionId }, "an inbox could not be looked into");
      return { kind: "done" }; // its own wake-ups stand for what waits in it
    }
  }

  /** W7. A clock that is behind the broker's finds that its time has not come yet, and waits for it again. */
  async function setDeadline({ state: { runId, accepted, phase } }: ActiveRun): Promise<void> {
    if (phase.kind !== "parked" || !Number.isFinite(phase.untilMs)) return;
    await options.timers.set({ sessionId: accepted.sessionId, runId }, Math.max(phase.untilMs, clock.now() + 250));
  }

  /** A verdict if another process answers for the session; undefined when it is time to look again. */
  async function takeUp(active: ActiveRun, hold: Hold): Promise<Verdict | undefined> {
    const { journal, state } = active;
    const holder = state.phase.kind === "working" ? state.claim?.instance : undefined;
    if (holder !== undefined && holder !== instance) {
      const told = await holders.ask(holder, state.accepted.sessionId, hold.wakeId);
      if (told === "taken") return putBack; // W2
      if (told === "leave") return { kind: "leave" };
      if (told === "unsure") return { kind: "later", delayMs: 200 };
    }
    if (options.handover.aborted) return { kind: "later", delayMs: 0 };
    const run = await claimRun(journal, instance); // W4
    const outcome = run && (await turn(run, active, hold));
    if (outcome === "handed_over") return { kind: "later", delayMs: 0 };
    return outcome === "parked" ? restParked(active) : undefined;
  }

  /** W8. */
  async function restParked(active: ActiveRun): Promise<Verdict | undefined> {
    const { state } = active.journal;
    if (state?.phase.kind !== "parked" || isRunnable(state, clock.now())) return undefined;
    await setDeadline({ ...active, state }); // W7
    return { kind: "done" };
  }

  async function turn(run: ClaimedRun, active: ActiveRun, hold: Hold): Promise<LoopOutcome | undefined> {
    const given = new AbortController();
    using ending = openEnding(given.signal, options.abandon);
    hold.nudge = () => {
      run.refresh().catch((error: unknown) => {
        if (error instanceof Superseded) given.abort(error); // whatever else it is, the next append meets it too
      });
    };
    if (hold.hasNews) hold.nudge(); // they came while the run was claimed
    try {
      return await options.turnLoop(run, active, ending.signal);
    } catch (error) {
      if (error instanceof Superseded || given.signal.aborted) return undefined;
      if (options.abandon.aborted || isPassing(error)) throw error;
      logger.error({ err: error, runId: run.state.runId }, "a run failed by an error that nobody expected");
      await run.end({ status: RunStatus.FAILED, reason: "internal_error", error: "internal error" }); // W5
      return undefined;
    } finally {
      hold.nudge = () => {};
    }
  }

  return { work, answer };
}

const putBack: Verdict = { kind: "later", delayMs: 500 };

function putDown(wake: Wake, verdict: Verdict): void {
  if (verdict.kind === "later") wake.later(verdict.delayMs);
  else if (verdict.kind !== "kept") wake[verdict.kind]();
}
