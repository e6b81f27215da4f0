/**
 * LOOP-5: outputs of the client's tools.
 *
 * outputs-1  All of a request are checked before the first is stored: one that is refused loses no other. The whole of each that is shortened
 *     is stored by then.
 * outputs-2  An event has one output, so a crash may leave a part. An output whose submission has won counts as taken: a repetition
 *     stores what is missing, and nothing twice.
 * outputs-3  Requests answer their calls in the order of the turn: of two that differ, the first call decides, and the other stores none.
 * outputs-4  The session is woken for the last output, before it is written (journal-4), and by a repetition that finds all of them there.
 */

import type { ToolOutput } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { type FoldedRun, openCallCount } from "../../log/state/fold.ts";
import { announcer, type ExistingJournal, type ExistingRunOptions, openExisting } from "../existing-run.ts";
import { type BoundResult, checkedOutputs, isTaken } from "./outputs.ts";

export async function submitOutputs(
  options: ExistingRunOptions & { readonly boundResult: BoundResult },
  runId: string,
  outputs: readonly ToolOutput[],
  { caller, signal }: { readonly caller: Caller; readonly signal?: AbortSignal | undefined },
): Promise<FoldedRun> {
  const journal = await openExisting(options, runId, caller);
  const checked = await checkedOutputs(options.boundResult, journal.state, { outputs, signal }); // outputs-1, outputs-3
  const wake = announcer(options, journal);
  const announce = async (eventCount: number) => (isLastOutput(journal) ? wake(eventCount) : undefined);
  let isStored = false;
  for (const value of checked) {
    const decide = (state: FoldedRun | undefined) =>
      isTaken(state, value) ? undefined : ({ case: "callFinished", value } as const); // outputs-2
    const event = await journal.append(decide, { announce });
    isStored = event !== undefined;
  }
  const { state } = journal;
  const waits = state.phase.kind === "parked" && openCallCount(state) === 0;
  if (waits && !isStored) await wake(state.eventCount); // outputs-4
  return state;
}

/** Of outputs that come in parts, only the last one makes the run go on: the others wake no session. */
function isLastOutput({ state }: ExistingJournal): boolean {
  return openCallCount(state) <= 1;
}
