/** Since when a session has its agent, and what that is shown of the time before (ORCH-1). Each run's log says it of the run. */

import type { RunAccepted } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { Carry, type Session } from "#gen/toolbus/session/v1/session_pb.ts";

export type Standing = Pick<RunAccepted, "agent" | "switchCount" | "carry">;

/** How runs stand that are accepted now. A switch under way is waited for when their tools are listed. */
export function standingOf(session: Session): Standing {
  const { agent, nextAgent, switchCount, carry, nextCarry } = session;
  const isLeaving = nextAgent !== "" && nextAgent !== agent; // while its context is built, the next agent is the session's
  return isLeaving
    ? { agent: nextAgent, switchCount: switchCount + 1, carry: nextCarry }
    : { agent, switchCount, carry };
}

/** Whether no switch stands between two runs of a session. One that was taken back may have left runs of another agent. */
export function isSameTime(one: Standing, other: Standing): boolean {
  return one.switchCount === other.switchCount && one.agent === other.agent;
}

/** Whether a run of the session is not shown at all to one of that standing. */
export function isHidden(past: Standing, from: Standing): boolean {
  return from.carry === Carry.NOTHING && !isSameTime(past, from);
}
