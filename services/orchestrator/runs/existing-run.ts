/**
 * What every request about an existing run begins with. From outside, a run is for the principal that opened its session: others
 * get `PRINCIPAL_NOT_OWNER`, and lists without a session leave out runs that are not theirs.
 */

import { refuse } from "#runtime/failure/failure.ts";
import { requireOwner } from "#runtime/failure/session-owner.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { openJournal, type RunJournal, type RunLog } from "../log/journal.ts";
import type { FoldedRun } from "../log/state/fold.ts";
import type { WakeQueue } from "../sessions/wakes/wake.ts";

export interface ExistingRunOptions {
  readonly log: RunLog;
  readonly wakes: Pick<WakeQueue, "send">;
  readonly clock: Clock;
}

/** The journal of a run whose log was found: whatever is read or appended later, it has a state. */
export interface ExistingJournal extends RunJournal {
  readonly state: FoldedRun;
}

/** A run is for the owner of its session, which is the principal that it is made for. */
export async function openExisting(
  { log, clock }: Pick<ExistingRunOptions, "log" | "clock">,
  runId: string,
  caller: Caller,
): Promise<ExistingJournal> {
  const journal = await openJournal(log, runId, clock);
  requireOwner(journal.state?.accepted ?? notFound(runId), caller, `run ${runId}`);
  return journal as ExistingJournal;
}

/** Wakes the session for what is to be appended. */
export function announcer({ wakes }: ExistingRunOptions, { state: { runId, accepted } }: ExistingJournal) {
  return (eventCount: number) => wakes.send({ sessionId: accepted.sessionId, runId, eventCount });
}

export function notFound(runId: string): never {
  return refuse("not_found", `there is no run ${runId}`, { reason: "RUN_NOT_FOUND", metadata: { run_id: runId } });
}
