import type { Session } from "#gen/toolbus/session/v1/session_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Owner } from "./owner.ts";

/** Reads a session from the router; refuses an unknown one. */
export type ReadSession = (sessionId: string) => Promise<Pick<Session, "principal" | "agent">>;

/** Who asks: the principal that the gateway authenticated, or undefined for the suite's own services. */
export type Asker = string | undefined;

export interface Sessions {
  /**
   * Whose inbox, memory and active space are meant: those of the agent that is named, else of the one that is active in the
   * session. Refuses whoever does not own the session.
   */
  ownerFor(asked: { sessionId: string; agent: string }, asker: Asker): Promise<Owner>;
}

const knownPrincipals = 10_000;

/** The principal that opened a session owns it for ever, so it is asked for once; the active agent changes. */
export function createSessions(readSession: ReadSession): Sessions {
  const principalsBySession = new Map<string, string>();

  const read = async (sessionId: string) => {
    const session = await readSession(sessionId);
    principalsBySession.set(sessionId, session.principal);
    const [oldest] = principalsBySession.keys();
    if (principalsBySession.size > knownPrincipals && oldest !== undefined) principalsBySession.delete(oldest);
    return session;
  };
  const requireOwner = async (sessionId: string, asker: string) => {
    const principal = principalsBySession.get(sessionId) ?? (await read(sessionId)).principal;
    if (principal === asker) return;
    refuse("permission_denied", `session ${sessionId} belongs to another caller`, { reason: "NOT_SESSION_OWNER" });
  };

  return {
    async ownerFor({ sessionId, agent }, asker) {
      if (asker !== undefined) await requireOwner(sessionId, asker);
      return { sessionId, agent: agent || (await read(sessionId)).agent };
    },
  };
}
