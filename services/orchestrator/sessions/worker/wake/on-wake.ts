/** What a wake-up is for. `worker.ts` has the rules (worker-…). */

import { createJournal, wakeWaitsMs } from "../../../log/journal.ts";
import { enqueue, type FreshRun } from "../../queue.ts";
import type { Wake } from "../../wakes/wake.ts";
import { keepQueuedDeadline } from "../queued-deadline.ts";
import type { WorkerOptions } from "../worker-options.ts";

/**
 * worker-3: "early" while the events that it announces are not stored. Else the run that it is for, if that was only accepted: as its
 * creator knows it in this process, or as the log has it. If the creator died before it enqueued the run, this does.
 */
export async function onWake(options: WorkerOptions, { message, ageMs }: Wake) {
  const { acceptedHere, log, queues, clock } = options;
  const { runId, sessionId, eventCount } = message;
  if (runId === "") return undefined; // an inbox has its event before the wake-up is sent
  let fresh: FreshRun | undefined = eventCount === 1 ? await acceptedHere?.take(runId) : undefined;
  if (fresh?.entry.queued.previousEntrySequence === 0n) return fresh; // it waits for none
  if (fresh === undefined) {
    const last = await log.last(runId);
    if (last === undefined || last.event.sequence + 1 < eventCount) return ageMs > wakeWaitsMs ? undefined : "early";
    const isFirst = last.event.sequence === 0;
    const first = isFirst ? last : await log.first(runId);
    const entry = first && (await enqueue(queues, { sessionId, runId, acceptedPosition: first.position }));
    if (!isFirst || entry === undefined) return undefined;
    fresh = { entry, journal: createJournal(log, runId, clock, first) };
  }
  await keepQueuedDeadline(options, fresh.journal); // worker-9
  return fresh;
}
