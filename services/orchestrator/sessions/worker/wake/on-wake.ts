/** What a wake-up is for. `worker.ts` has the rules (worker-…). */

import { wakeWaitsMs } from "../../../log/journal.ts";
import { type ActiveRun, enqueue } from "../../queue.ts";
import type { Wake } from "../../wakes/wake.ts";
import { keepQueuedDeadline } from "../queued-deadline.ts";
import type { WorkerOptions } from "../worker-options.ts";

/** The run that this wake-up announces, if this process accepted it; later events of a run are waited for (worker-3). */
export async function findAcceptedHere(
  { acceptedHere }: WorkerOptions,
  { message }: Wake,
): Promise<ActiveRun | undefined> {
  const { runId, eventCount } = message;
  const freshRun = eventCount === 1 ? await acceptedHere?.take(runId) : undefined;
  const state = freshRun?.journal.state;
  return state && freshRun && { ...freshRun, state };
}

/** worker-3. If the creator of the run died before it enqueued the run, this does, and sets the deadline (worker-9). */
export async function areEventsStored(options: WorkerOptions, { message, ageMs }: Wake): Promise<boolean> {
  const { log, queues } = options;
  const { runId, sessionId, eventCount } = message;
  if (runId === "") return true; // an inbox has its event before the wake-up is sent
  const last = await log.last(runId);
  if (last === undefined || last.event.sequence + 1 < eventCount) return ageMs > wakeWaitsMs;
  const first = last.event.sequence === 0 ? last : await log.first(runId);
  if (first !== undefined) await enqueue(queues, { sessionId, runId, acceptedPosition: first.position });
  if (last?.event.sequence === 0) await keepQueuedDeadline(options, last.event);
  return true;
}
