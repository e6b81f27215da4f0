import { type Session, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { BoundedMap } from "#runtime/collections/bounded-map.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";
import { isOwner, requireOwner } from "#runtime/failure/session-owner.ts";
import { type Caller, principalOf } from "#runtime/rpc/identity.ts";

/** Reads a session from the router; refuses an unknown one. */
export type ReadSession = (sessionId: string) => Promise<Session>;

/** Whose sessions are whose: the principal that opened a session owns it for ever. */
export interface Sessions {
  /** Refuses everybody but the owner. */
  requireOwner(sessionId: string, caller: Caller): Promise<void>;
  /** The same, and refuses a session that is closed. */
  requireOpen(sessionId: string, caller: Caller): Promise<void>;
  /** Who opened it; undefined for one that there is not, or not any more. */
  findPrincipal(sessionId: string): Promise<string | undefined>;
}

/** Whether it is closed, or has no calls any more and is about to be. */
export function isOver({ state, nextAgent }: Session): boolean {
  return state === SessionState.CLOSED || (state === SessionState.TEARING_DOWN && nextAgent === "");
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
  const refuseStranger = (sessionId: string, owner: string, caller: Caller) => {
    if (!isOwner(owner, caller)) onStranger(sessionId, principalOf(caller));
    requireOwner({ principal: owner }, caller, `session ${sessionId}`);
  };

  const principalOfSession = async (sessionId: string) =>
    ownersBySession.get(sessionId) ?? (await read(sessionId)).principal;

  return {
    async requireOwner(sessionId, caller) {
      refuseStranger(sessionId, await principalOfSession(sessionId), caller);
    },
    findPrincipal: (sessionId) =>
      principalOfSession(sessionId).catch((error: unknown) => {
        if (error instanceof Failure && error.code === "not_found") return undefined;
        throw error;
      }),
    async requireOpen(sessionId, caller) {
      const session = await read(sessionId);
      refuseStranger(sessionId, session.principal, caller);
      if (isOver(session))
        refuse("failed_precondition", `session ${sessionId} is closed`, { reason: "SESSION_CLOSED" });
    },
  };
}
