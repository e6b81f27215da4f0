import { type Session, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { isOwner, requireOwner } from "#runtime/failure/session-owner.ts";
import { createPrincipals } from "#runtime/rpc/access/session-principals.ts";
import { type Caller, principalOf } from "#runtime/rpc/identity.ts";

/** Whether it is closed, or has no calls any more and is about to be. */
export function isOver({ state, nextAgent }: Session): boolean {
  return state === SessionState.CLOSED || (state === SessionState.TEARING_DOWN && nextAgent === "");
}

interface SessionsOptions {
  /** From the router; refuses an unknown one. */
  readSession: (sessionId: string) => Promise<Session>;
  /** Told of everybody who is refused because a session is another's. */
  onStranger: (sessionId: string, principal: string) => void;
}

export type Sessions = ReturnType<typeof createSessions>;

/** Whose sessions are whose. */
export function createSessions({ readSession, onStranger }: SessionsOptions) {
  const { read, principalOf: ownerOf, findPrincipal } = createPrincipals(readSession);
  const refuseStranger = (sessionId: string, owner: string, caller: Caller) => {
    if (!isOwner(owner, caller)) onStranger(sessionId, principalOf(caller));
    requireOwner({ principal: owner }, caller, `session ${sessionId}`);
  };

  return {
    findPrincipal,
    /** Refuses everybody but the owner. */
    async requireOwner(sessionId: string, caller: Caller): Promise<void> {
      refuseStranger(sessionId, await ownerOf(sessionId), caller);
    },
    /** The same, and refuses a session that is closed. */
    async requireOpen(sessionId: string, caller: Caller): Promise<void> {
      const session = await read(sessionId);
      refuseStranger(sessionId, session.principal, caller);
      if (isOver(session))
        refuse("failed_precondition", `session ${sessionId} is closed`, { reason: "SESSION_CLOSED" });
    },
  };
}
