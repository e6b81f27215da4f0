import type { OperatorLog } from "#runtime/lifecycle/logger.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { ClaimedRun } from "../../log/claim.ts";
import type { RunLog } from "../../log/journal.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import type { LoopOutcome } from "../../loop/loop.ts";
import type { ActiveRun, SessionQueues } from "../queue.ts";
import type { Slots } from "../wakes/slots.ts";
import type { Holders, Timers } from "../wakes/wake.ts";
import type { AcceptedHere } from "./accepted-here.ts";

/** Claims the run as it was seen; undefined when it was changed meanwhile. */
export type Claim = () => Promise<ClaimedRun | undefined>;

export interface WorkerOptions {
  readonly log: RunLog;
  readonly queues: SessionQueues;
  readonly holders: Holders;
  readonly timers: Timers;
  /** Runs that were accepted in this process; without it, all are found in the log. */
  readonly acceptedHere?: Pick<AcceptedHere, "take">;
  readonly slots: Pick<Slots, "isFullFor" | "begin" | "beginInTurn" | "hold">;
  /** This process in claims: never the same for two processes, nor for two lives of one. */
  readonly instance: string;
  readonly clock: Clock;
  readonly logger: OperatorLog;
  /** Claims a run and turns its loop until it ends, parks, or is handed over. Throws only what passes (worker-5). */
  readonly turnLoop: (claim: Claim, active: ActiveRun, signal: AbortSignal) => Promise<LoopOutcome | undefined>;
  /** Starts a run when something waits in the session's inbox; gives whether there is one to work on. */
  readonly startFromInbox: (sessionId: string, signal: AbortSignal) => Promise<boolean>;
  /** Closes what was open for a run alone that has ended; called again for the same run when its session is looked at again. */
  readonly releaseRun?: (run: FoldedRun) => Promise<void>;
  /** Aborts when this process is to stop: no further run is claimed. */
  readonly handover: AbortSignal;
  /** Aborts when it has to stop at once: what is under way is dropped. */
  readonly abandon: AbortSignal;
}
