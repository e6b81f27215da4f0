import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import { refuseMissingSession, requireOwner } from "#runtime/failure/session-owner.ts";
import { type Caller, isServiceItself } from "#runtime/rpc/identity.ts";
import { createPrincipals } from "./session-principals.ts";

/*
 * What belongs to a session is, from outside, for the principal that opened it:
 *
 * session-owner-1  The session itself, and what is called, listed and explained in it.
 * session-owner-2  Its recorded calls. A call that a watcher has taken is shown to that watcher, too.
 * session-owner-3  Results: calls that services watch for are answered by those who watch for them or have taken them, which
 *     submissions.ts decides; all others by the owner, and by people through spaces, which is one of the suite's own services.
 * session-owner-4  Its decisions in the audit trail. What concerns no session, or one of somebody else, is for operators.
 *
 * A session that does not exist has nothing to protect: the code that reads it refuses. But it may be somebody else's
 * a moment later: what reads it again, waits for it or retries requires that it stands.
 */
export interface SessionOwners {
  /** session-owner-1; an empty id is no session. */
  requireSession(sessionId: string, caller: Caller): Promise<void>;
  /** session-owner-1, and refuses a session that does not exist, to everybody. */
  requireStanding(sessionId: string, caller: Caller): Promise<void>;
  /** session-owner-4 */
  isOwnSession(sessionId: string, caller: Caller): Promise<boolean>;
}

export function createSessionOwners(
  read: (sessionId: string) => Promise<Pick<Session, "principal"> | undefined>,
  now?: () => number,
): SessionOwners {
  const readStanding = async (id: string) => (await read(id)) ?? refuseMissingSession(id);
  const { findPrincipal: ownerOf } = createPrincipals(readStanding, now);

  return {
    async requireSession(sessionId, caller) {
      if (isServiceItself(caller) || sessionId === "") return;
      const principal = await ownerOf(sessionId);
      if (principal !== undefined) requireOwner({ principal }, caller, `session ${sessionId}`);
    },
    async requireStanding(sessionId, caller) {
      const principal = (await ownerOf(sessionId)) ?? refuseMissingSession(sessionId);
      requireOwner({ principal }, caller, `session ${sessionId}`);
    },
    async isOwnSession(sessionId, caller) {
      return isServiceItself(caller) || (sessionId !== "" && (await ownerOf(sessionId)) === caller.principal);
    },
  };
}
