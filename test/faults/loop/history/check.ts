import { checkPrompts, checkWatched } from "./check-clients.ts";
import { checkDrafts } from "./check-drafts.ts";
import { checkAfterCancel, checkEffects } from "./check-effects.ts";
import { checkAcknowledged, checkEpochs, checkNotLost, checkOrder, checkTranscript } from "./check-log.ts";
import type { RunHistory, Violation } from "./history.ts";

const checks = [
  checkNotLost,
  checkOrder,
  checkEpochs,
  checkTranscript,
  checkAcknowledged,
  checkEffects,
  checkAfterCancel,
  checkDrafts,
  checkWatched,
  checkPrompts,
];

/** All promises of the loop that a run's history breaks (LOOP-10, LOOP-13 to LOOP-15): none, if all is well. */
export function checkHistory(history: RunHistory): Violation[] {
  return checks.flatMap((check) => [...check(history)]);
}
