import { type Session, SessionState as State } from "#gen/toolbus/session/v1/session_pb.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";

/** The session is being switched or closed. A caller that is bound to no agent waits. */
const SESSION_SWITCHING = "SESSION_SWITCHING";
/** What was decided by an agent that is not the session's any more, or will not be. */
export const AGENT_SWITCHED = "AGENT_SWITCHED";
/** A switch from an agent that the session has left meanwhile. */
const SWITCH_OUTDATED = "SWITCH_OUTDATED";
export const SESSION_CLOSED = "SESSION_CLOSED";

export function isSwitching(error: unknown): boolean {
  return error instanceof Failure && error.reason === SESSION_SWITCHING;
}

export function isSettled({ state }: Session): boolean {
  return state === State.ACTIVE || state === State.CLOSED;
}

export function refuseClosed(id: string): never {
  const metadata = { session_id: id };
  return refuse("failed_precondition", `session ${id} is closed`, { reason: SESSION_CLOSED, metadata });
}

export function refuseSwitching(session: Session): never {
  const { id, nextAgent } = session;
  const metadata = { session_id: id, agent: nextAgent };
  return refuse("aborted", `session ${id} ${wayOf(session)}`, { reason: SESSION_SWITCHING, metadata });
}

/** For a switch from another agent than the session has; `session` as clients see it. */
export function refuseOutdated(session: Session, expected: number): never {
  const { id, agent, contextRevision } = session;
  const standing = `session ${id} has agent ${JSON.stringify(agent)} with context revision ${contextRevision}`;
  return refuse("aborted", `${standing}: a switch from context revision ${expected} is not made`, {
    reason: SWITCH_OUTDATED,
    metadata: { session_id: id, agent, context_revision: String(contextRevision) },
  });
}

/** For a call that an agent decided which the session leaves, or has left. */
export function refuseSwitched(session: Session): never {
  const { id, agent } = session;
  const standing = isSettled(session) ? `has agent ${JSON.stringify(agent)} now` : wayOf(session);
  const message = `session ${id} ${standing}: what its former agent decided is not carried out`;
  return refuse("failed_precondition", message, { reason: AGENT_SWITCHED, metadata: { session_id: id, agent } });
}

/** Why a call that was under way is given up. */
export function canceledBySwitch(session: Session): Failure {
  const message = `the call was canceled: session ${session.id} ${wayOf(session)}, and the call took too long`;
  return new Failure("aborted", message, { reason: AGENT_SWITCHED });
}

function wayOf({ nextAgent }: Session): string {
  return nextAgent === "" ? "is being closed" : `is being switched to agent ${JSON.stringify(nextAgent)}`;
}
