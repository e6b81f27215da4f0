/** What a wake-up is for, when it arrives. The rules (W…) are those of `worker.ts`. */

import { wakeWaitsMs } from "../../log/journal.ts";
import { type ActiveRun, enqueue } from "../queue.ts";
import type { Wake } from "../wakes/wake.ts";
import { keepQueuedDeadline } from "./queued-deadline.ts";
import type { WorkerOptions } from "./worker-options.ts";

/** Of a run that was accepted here, and of whose acceptance the wake-up tells: further news are waited for (W3). */
export async function beginningOf({ beginnings }: WorkerOptions, { message }: Wake): Promise<ActiveRun | undefined> {
  const { runId, eventCount } = message;
  const beginning = eventCount === 1 ? await beginnings?.take(runId) : undefined;
  const state = beginning?.journal.state;
  return state && beginning && { ...beginning, state };
}

/** W3. An accepted run that its creator did not live to enqueue is enqueued here, and its deadline kept (W9). */
export async function hasNews(options: WorkerOptions, { message, ageMs }: Wake): Promise<boolean> {
  const { log, queues } = options;
  const { runId, sessionId, eventCount } = message;
  if (runId === "") return true; // news of the inbox stand there before the wake-up
  const last = await log.last(runId);
  if (last === undefined || last.event.sequence + 1 < eventCount) return ageMs > wakeWaitsMs;
  const first = last.event.sequence === 0 ? last : await log.first(runId);
  if (first !== undefined) await enqueue(queues, { sessionId, runId, acceptedPosition: first.position });
  if (last?.event.sequence === 0) await keepQueuedDeadline(options, last.event);
  return true;
}
