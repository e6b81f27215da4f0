/** Since when a session has its agent, and what that is shown of the time before (ORCH-1). Each run's log says it of the run. */

import type { RunAccepted } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { Carry, type Session } from "#gen/toolbus/session/v1/session_pb.ts";

export type Standing = Pick<RunAccepted, "agent" | "switches" | "carry">;

/** How runs stand that are accepted now. A switch under way is waited for when their tools are listed. */
export function standingOf(session: Session): Standing {
  const { agent, nextAgent, switches, carry, nextCarry } = session;
  const isLeaving = nextAgent !== "" && nextAgent !== agent; // while its context is built, the next agent is the session's
  return isLeaving ? { agent: nextAgent, switches: switches + 1, carry: nextCarry } : { agent, switches, carry };
}

/** Whether no switch stands between two runs of a session. One that was taken back may have left runs of another agent. */
export function isSameTime(one: Standing, other: Standing): boolean {
  return one.switches === other.switches && one.agent === other.agent;
}

/** Whether a run of the session is not shown at all to one of that standing. */
export function isHidden(past: Standing, from: Standing): boolean {
  return from.carry === Carry.NOTHING && !isSameTime(past, from);
}
