import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import { requireOwner } from "#runtime/failure/session-owner.ts";
import { createPrincipals } from "#runtime/rpc/access/session-principals.ts";
import { type Caller, isServiceItself } from "#runtime/rpc/identity.ts";
import type { Owner } from "./owner.ts";

/** Reads a session from the router; refuses an unknown one. */
export type ReadSession = (sessionId: string) => Promise<Pick<Session, "principal" | "agent">>;

export type Sessions = ReturnType<typeof createSessions>;

/** Whose sessions are whose; the active agent of one changes. */
export function createSessions(readSession: ReadSession) {
  const { read, principalOf, findPrincipal } = createPrincipals(readSession);
  return {
    principalOf,
    findPrincipal,
    /** Whether one principal opened both. */
    async haveOneOwner(one: string, other: string): Promise<boolean> {
      const [first, second] = await Promise.all([one, other].map(principalOf));
      return first === second;
    },
    /**
     * Whose inbox, memory and active space are meant: those of the agent that is named, else of the one that is active in the
     * session. Refuses whoever does not own the session.
     */
    async ownerFor({ sessionId, agent }: Owner, caller: Caller): Promise<Owner> {
      if (!isServiceItself(caller))
        requireOwner({ principal: await principalOf(sessionId) }, caller, `session ${sessionId}`);
      return { sessionId, agent: agent || (await read(sessionId)).agent };
    },
  };
}
