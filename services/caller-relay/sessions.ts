import { type Session, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { BoundedMap } from "#runtime/collections/bounded-map.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { isOwner, requireOwner } from "#runtime/failure/session-owner.ts";

/** Reads a session from the router; refuses an unknown one. */
export type ReadSession = (sessionId: string) => Promise<Session>;

/** Whose sessions are whose: the principal that opened a session owns it for ever. */
export interface Sessions {
  /** Refuses everybody but the owner. */
  requireOwner(sessionId: string, principal: string): Promise<void>;
  /** The same, and refuses a session that is closed. */
  requireOpen(sessionId: string, principal: string): Promise<void>;
}

const knownOwners = 10_000;

export interface SessionsOptions {
  readSession: ReadSession;
  /** Told of everybody who is refused because a session is another's. */
  onStranger: (sessionId: string, principal: string) => void;
}

export function createSessions({ readSession, onStranger }: SessionsOptions): Sessions {
  const ownersBySession = new BoundedMap<string, string>(knownOwners);

  const read = async (sessionId: string) => {
    const session = await readSession(sessionId);
    ownersBySession.set(sessionId, session.principal);
    return session;
  };
  const refuseStranger = (sessionId: string, owner: string, principal: string) => {
    if (!isOwner(owner, principal)) onStranger(sessionId, principal);
    requireOwner({ sessionId, principal: owner }, principal);
  };

  return {
    async requireOwner(sessionId, principal) {
      refuseStranger(sessionId, ownersBySession.get(sessionId) ?? (await read(sessionId)).principal, principal);
    },
    async requireOpen(sessionId, principal) {
      const session = await read(sessionId);
      refuseStranger(sessionId, session.principal, principal);
      if (session.state === SessionState.CLOSED)
        refuse("failed_precondition", `session ${sessionId} is closed`, { reason: "SESSION_CLOSED" });
    },
  };
}
