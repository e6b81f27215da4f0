import { hash } from "node:crypto";
import type { RunLog } from "../../log/journal.ts";
import { entriesBackward, type SessionQueues } from "../../sessions/queue.ts";

/** The session of the run that a call starts (sub-agent-1 of `call.ts`); `callId` is the router's. */
export function sessionOfCall(callId: string): string {
  return `sub_${hash("sha256", callId, "hex").slice(0, 40)}`;
}

const nameOfCalledSession = /^sub_[0-9a-f]{40}$/;

/**
 * Whether a call began a run in the session, or is about to: one of its name without runs is waiting for it. Of the logs only
 * first events are read, and of sessions that are named otherwise nothing.
 */
export async function isCalledSession(
  { queues, log }: { queues: SessionQueues; log: Pick<RunLog, "first"> },
  sessionId: string,
): Promise<boolean> {
  if (!nameOfCalledSession.test(sessionId)) return false;
  const last = await queues.last(sessionId);
  for await (const { queued } of entriesBackward(queues, last)) {
    const event = (await log.first(queued.runId))?.event.event;
    if (event?.case === "accepted" && event.value.parent !== undefined) return true;
  }
  return last === undefined;
}
